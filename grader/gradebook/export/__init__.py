"""Marks back into a platform: its own downloaded file, filled in. One file for each platform."""
