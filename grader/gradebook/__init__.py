"""Adjust marks by the instructor's book, and export them to a platform."""
