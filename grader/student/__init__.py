"""The commands for students: check, watch, hint, reset, compare and break."""
