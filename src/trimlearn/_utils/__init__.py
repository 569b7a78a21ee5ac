"""What every layer may use: arrays, files, threads, checks, warnings."""
