"""Code that several problems use: oracles, test helpers, models and pictures."""
