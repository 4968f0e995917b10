"""Downloads of learning platforms: one file for each, all of them in `registry`."""
