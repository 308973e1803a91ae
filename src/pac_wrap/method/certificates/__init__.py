"""The certificate: what it says, where it comes from, and whether it is true of given scores."""
