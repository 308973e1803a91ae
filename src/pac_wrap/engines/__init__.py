"""One thin adapter, without statistics, for each engine that holds its data in partitions."""
