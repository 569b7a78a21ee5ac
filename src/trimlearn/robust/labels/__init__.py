"""Which labels are wrong."""
