"""Everything that knows right answers. No process with student code in it has these modules."""
