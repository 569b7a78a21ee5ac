"""Trimmed models of a linear prediction."""
