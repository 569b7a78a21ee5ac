"""Trimmed estimators of location and covariance."""
