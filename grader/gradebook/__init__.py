"""The book of marks: corrections and lateness, and the way of the marks back into a platform."""
