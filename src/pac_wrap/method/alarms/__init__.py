"""Precision and workload of alarms, and the prevalence of anomalies, as a certificate bounds them."""
