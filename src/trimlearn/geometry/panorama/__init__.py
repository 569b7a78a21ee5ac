"""Many images at once."""
