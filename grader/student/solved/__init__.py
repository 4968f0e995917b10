"""Implement the commands that need solutions. Only a copy with `solutions/` has this package."""
