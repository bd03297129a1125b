"""Stubs generated from ``proto/`` by ``make stubs``; never edited."""
