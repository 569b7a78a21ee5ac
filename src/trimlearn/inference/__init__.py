"""What a fit lets one say: standard errors, intervals, tables of coefficients and of examples."""
