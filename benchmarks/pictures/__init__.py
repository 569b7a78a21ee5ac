"""The pictures of the documentation: `python -m benchmarks.pictures` draws them anew."""
