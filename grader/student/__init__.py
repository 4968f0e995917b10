"""What students run: check, watch, hints, reset, pictures."""
