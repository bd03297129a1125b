"""A run's folder and database."""
