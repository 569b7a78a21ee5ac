"""Least trimmed squares and least median of squares."""
