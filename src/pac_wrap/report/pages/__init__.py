"""Results as pages: one HTML file, Markdown or JSON, with its pictures and its explorer."""
