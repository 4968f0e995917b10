"""What comes in: folders, archives and downloads of learning platforms, read as submissions."""
