"""The field's own benchmark: what thresholds that people use are worth beside what can be promised."""
