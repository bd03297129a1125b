"""The life of a run, from its clients joining to its files."""
