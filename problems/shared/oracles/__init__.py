"""Right answers and judges. No process with student code has these modules."""
