"""Settings that every test shares."""

from hypothesis import settings

# the same examples on every run: a failure is a change in the code, never luck
settings.register_profile("fixed", derandomize=True, deadline=None)
settings.load_profile("fixed")
