"""Compute expected results and judge results. Workers that run tests do not receive these files."""
