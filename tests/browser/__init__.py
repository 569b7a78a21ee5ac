"""A package, so that its conftest and that of all tests have two names."""
