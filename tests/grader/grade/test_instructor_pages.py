"""The folder of reports contains the graded files, and a page about each student."""

from __future__ import annotations

import shutil
from hashlib import sha256
from typing import Any


def stored_sources(school: Any) -> set[str]:
    return {path.stem for path in (school.out / "sources").iterdir()}


def hashes(*sources: str) -> set[str]:
    return {sha256(source.encode()).hexdigest() for source in sources}


def test_instructor_pages_show_the_graded_files(school: Any) -> None:
    school.grade()
    pages = {path.name for path in (school.out / "instructor").iterdir()}
    assert pages == {"ada.html", "bob.html"}
    assert school.wrong in (school.out / "instructor/bob.html").read_text()
    assert stored_sources(school) == hashes(school.right, school.wrong)
    handed_out = {path.stem: path.read_text() for path in (school.out / "feedback").iterdir()}
    assert {*handed_out} == {"ada", "bob"}
    assert not any("Only for the instructor" in page for page in handed_out.values())
    (school.out / "sources/notes.py").write_text("somebody's own")
    school.hand_in("bob", "def double(x): return 5 * x")
    school.grade()
    assert "5 * x" in (school.out / "instructor/bob.html").read_text()
    assert stored_sources(school) == {*hashes(school.right, "def double(x): return 5 * x"), "notes"}


def test_files_of_former_students_stay_with_their_results(school: Any) -> None:
    school.grade()
    shutil.rmtree(school.folder / "bob")
    school.grade()
    assert stored_sources(school) == hashes(school.right, school.wrong)
