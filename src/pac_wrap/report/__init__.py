"""A result in, a string or a rich renderable out."""
