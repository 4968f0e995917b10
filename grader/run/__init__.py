"""Run the course's tests, at home and in grading, and describe failures."""

from grader.run.only_pytest import require_pytest

require_pytest()
