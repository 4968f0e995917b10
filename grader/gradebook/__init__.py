"""Adjust marks with the instructor's files, and export marks to a platform."""
