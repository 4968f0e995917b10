"""Paths that a worker must not read."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.course import COURSE_VARIABLE
from grader.errors import UsageError
from grader.sandbox import starting


def test_a_course_elsewhere_is_secret_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An installed grader keeps the solutions of the course that it grades, wherever they lie."""
    monkeypatch.setenv(COURSE_VARIABLE, str(tmp_path))
    secret = starting.secret_paths()
    assert {str(tmp_path / "solutions"), str(starting.ROOT / "solutions")} <= {*secret}


def test_no_course_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no course, the package's own folders are still secret."""

    def none() -> None:
        raise UsageError("There is no course.")

    monkeypatch.setattr(starting, "own_course", none)
    assert str(starting.ROOT / "grader") in starting.secret_paths()
