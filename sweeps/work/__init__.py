"""Who trains: workers, jobs, memory, progress, executors."""
