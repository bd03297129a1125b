"""Sums that do not depend on the order of their summands: the same bits for every order, grouping and tree."""
