"""Wrong cells of a table: which numbers do not fit to the others in their row, and what was to be expected there."""
