"""The base of all folders: checks of arguments, files written whole or not at all, JSON, numbers, texts."""
