"""What alarms are worth: what happens to a point of each class, and what follows for alarms and work."""
