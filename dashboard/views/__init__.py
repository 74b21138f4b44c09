"""What is drawn, a file a thing: its data frame, its chart and its section of a page."""
