"""What the problems share: numbers, a small model, and what pictures and talks are made with."""
