"""Settings for all tests."""

from hypothesis import settings

# The same examples on every run, and no deadline: a first call may compile.
settings.register_profile("deterministic", derandomize=True, deadline=None)
settings.load_profile("deterministic")
