"""Tests, verdicts and reports for the attention course."""
