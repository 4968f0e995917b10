"""Archives as part of the tree: gone through once, in memory, with limits; nothing is unpacked."""
