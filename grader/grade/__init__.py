"""Grades submissions: one, a class, again, elsewhere; and what a mark rests on."""
