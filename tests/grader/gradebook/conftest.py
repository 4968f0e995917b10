"""A folder of reports for the tests of the gradebook."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from grader.grade.previous import save_result
from grader.result import SubmissionResult


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Create a folder of reports without results."""
    (tmp_path / "reports").mkdir()
    return tmp_path / "reports"


@pytest.fixture
def saved(folder: Path) -> Callable[..., Path]:
    """Return a function that saves results into the folder, each with a page of feedback."""

    def save(*results: SubmissionResult) -> Path:
        (folder / "feedback").mkdir(exist_ok=True)
        for each in results:
            save_result(each, folder / "results")
            page = folder / f"feedback/{each.submission}.html"
            page.write_text(f"<p>Feedback for {each.submission}</p>", encoding="utf-8")
        return folder

    return save
