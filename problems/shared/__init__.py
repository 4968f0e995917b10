"""Code that several problems use: oracles, a small model, pictures and talks."""
