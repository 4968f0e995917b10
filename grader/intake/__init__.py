"""Read folders, archives and downloads of learning platforms as submissions."""
