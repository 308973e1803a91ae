"""After deployment: whether a certificate still keeps its promises, and how to start again."""
