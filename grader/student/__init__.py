"""Implement the commands for students, such as check, watch, hint, reset and compare."""
