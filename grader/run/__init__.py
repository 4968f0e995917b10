"""Runs the course's tests, for students and graders alike, and says what is wrong."""
