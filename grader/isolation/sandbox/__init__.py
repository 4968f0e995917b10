"""What confines a worker on Linux, and the attacks by which that is proved."""
