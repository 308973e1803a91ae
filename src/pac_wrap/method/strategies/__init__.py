"""What is done where the classes overlap: one interface, and strategies that keep ceilings or raise them."""
