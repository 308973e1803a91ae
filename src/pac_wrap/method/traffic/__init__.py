"""What traffic and reviewed alarms can promise: alarms, false alarms, precision, and what to review next."""
