"""What is done where the classes overlap: one module for each strategy, behind one interface."""
