"""Who takes part and what counts as an answer. Pure: the time is an argument."""
