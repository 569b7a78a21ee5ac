"""``trimlearn.check``: what is wrong with a table, cell by cell, row by row and label by label."""
