"""What a run's folder shows a person: the report, the same page live, and their data."""
