"""What everything stands on: argument checks, files that appear whole or not at all, JSON, foreign text."""
