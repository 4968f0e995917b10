"""Compute results. A worker that tests student code does not contain this package."""
