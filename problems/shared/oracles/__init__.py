"""Compute expected results and judge results. Processes with student code lack this package."""
