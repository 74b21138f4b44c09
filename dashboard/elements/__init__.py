"""What pages put on the screen: charts, pictures, chips."""
