"""Code that the problems share: numbers, a small model, pictures and talks."""
