"""Grade submissions: one, a class, on a cluster, or again; and record the provenance of marks."""
