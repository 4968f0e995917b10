"""Runs the course's tests, for students and graders alike, and says what is wrong."""

from grader.run.only_pytest import require_pytest

require_pytest()
