"""Grade submissions on this machine or a cluster, and record the provenance of marks."""
