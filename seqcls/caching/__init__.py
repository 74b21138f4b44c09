"""What is made once and kept: by this process, and in files for others."""
