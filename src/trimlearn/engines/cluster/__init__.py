"""Rows on the workers of a Dask cluster. Dask is imported when an engine is made, never before."""
