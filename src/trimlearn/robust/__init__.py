"""The numerics behind the estimators: starts and concentration steps, robust scales and covariances, label noise."""
