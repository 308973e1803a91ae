"""What results say in words and numbers, the same on every page and in the terminal."""
