"""What several files of the course need."""
