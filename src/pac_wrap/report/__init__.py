"""What a result says, as one account; and that in every format."""
