"""Paths that a worker must not read."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.course import COURSE_VARIABLE
from grader.sandbox import starting


def test_a_course_elsewhere_is_secret_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Solutions of a graded course are secret wherever they are."""
    monkeypatch.setenv(COURSE_VARIABLE, str(tmp_path))
    secret = starting.secret_paths()
    assert {str(tmp_path / "solutions"), str(starting.ROOT / "solutions")} <= {*secret}
