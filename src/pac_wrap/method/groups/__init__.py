"""A threshold and a promise for every group: tenants, machines, hospitals."""
