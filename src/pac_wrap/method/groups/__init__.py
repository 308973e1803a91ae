"""A threshold and a promise for every group, such as tenants, machines or hospitals."""
