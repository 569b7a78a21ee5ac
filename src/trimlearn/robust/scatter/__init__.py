"""Location and scatter of the rows that agree."""
