"""One thin adapter per engine that holds its data in partitions; no statistics in them."""
