"""Trimmed affine subspaces."""
