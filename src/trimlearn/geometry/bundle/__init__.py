"""Cameras and points in space from where the points were seen: bundle adjustment."""
