"""The public side of the problem: losses and constraint sets."""
