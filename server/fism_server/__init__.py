"""The coordinator: knows the outer objective H, never a row of data."""
