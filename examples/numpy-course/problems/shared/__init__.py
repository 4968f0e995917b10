"""Code that several files of the course use."""
