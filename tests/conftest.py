"""Settings for all tests."""

import signal

from hypothesis import settings

# The same examples on every run, and no deadline: a first call may compile.
settings.register_profile("deterministic", derandomize=True, deadline=None)
settings.load_profile("deterministic")

# A shell lets what it starts in the background ignore Ctrl-C, and so would all that is started from here.
signal.signal(signal.SIGINT, signal.default_int_handler)
