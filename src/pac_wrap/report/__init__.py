"""The account of each result, as plain data, and its texts, pages and pictures in every format."""
