"""Export marks to a platform by filling in a file that was downloaded from it."""
