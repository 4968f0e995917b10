"""Export marks to a platform: fill in the file that was downloaded from it."""
