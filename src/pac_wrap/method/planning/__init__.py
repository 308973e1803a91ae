"""Labels and what they buy: looking as they come, labelling until a promise is kept, and planning it."""
