"""The page that shows what a check found: one file, which needs nothing else."""
