"""Commands that need solutions; a students' copy has this package only with `solutions/`."""
