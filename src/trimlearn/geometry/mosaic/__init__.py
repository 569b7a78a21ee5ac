"""From photographs to one picture."""
