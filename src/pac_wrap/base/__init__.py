"""What everything stands on: checks of arguments, whole files or none, JSON, numbers, text from outside."""
