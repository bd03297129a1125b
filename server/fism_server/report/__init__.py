"""Views of a run's folder: the report, the same page live, and the data behind them."""
