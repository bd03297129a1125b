"""What both sides of a federation must agree on; imports neither side."""
