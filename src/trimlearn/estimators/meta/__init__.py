"""Any scikit-learn estimator, trimmed."""
