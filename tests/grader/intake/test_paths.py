"""Paths that the instructor gives: one or several, and errors in them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from grader.course import Course
from grader.errors import SubmissionError
from grader.intake import limits, platforms
from grader.intake.platforms import Download
from grader.intake.submissions import find_submissions, take_in
from tests.grader.intake.uploads import (
    COURSE,
    FILE,
    ID,
    OTHER,
    RIGHT,
    WRONG,
    Files,
    Take,
    as_ordinary_user,
    assert_bad,
    open_to_all,
    source,
    submission,
    write,
    zip_file,
)


@pytest.mark.parametrize("what", ["missing", "file", "empty"])
def test_a_path_that_holds_nothing_is_refused(
    tmp_path: Path, small_course: Course, what: str
) -> None:
    path = tmp_path / what
    if what == "file":
        path.write_text("")
    elif what == "empty":
        path.mkdir()
    with pytest.raises(SubmissionError, match=what):
        find_submissions([path], small_course)


def test_a_class_that_may_not_be_read_is_the_instructors_to_mend(
    class_folder: Path, small_course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    submission(class_folder, "ada")

    def refuse(path: Path, scandir: Callable[[Path], object] = os.scandir) -> object:
        if path == class_folder:
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(SubmissionError, match="can't be read .Permission denied.; give a"):
        find_submissions([class_folder], small_course)


@pytest.mark.parametrize("name", ["bad.zip", "bad.tar.gz", "bad.7z"])
def test_a_bad_archive_by_itself_is_a_row(tmp_path: Path, small_course: Course, name: str) -> None:
    (tmp_path / name).write_bytes(b"nothing of that kind")
    (found,) = find_submissions([tmp_path / name], small_course)
    assert found.name == "bad"
    assert_bad(found, "not a zip or tar archive" if name != "bad.7z" else "not read; hand in one")


def test_one_file_without_the_option(tmp_path: Path, small_course: Course) -> None:
    with pytest.raises(SubmissionError, match=f"holds no submissions.*such as --problem {ID}"):
        take_in([write(tmp_path / "ada", {"problem.py": RIGHT})], small_course)


@pytest.mark.parametrize("problem", ["", "01"])
def test_a_flat_folder_is_refused_with_what_to_do(
    take: Take, two_problems: Course, problem: str
) -> None:
    names = ["ada_lovelace_problem1.py", "kurt_goedel_problem1.py", "Noether, Emmy - problem 1.py"]
    with pytest.raises(SubmissionError, match="into a folder of the student's name, and give"):
        take(dict.fromkeys(names, RIGHT), problem=problem, course=two_problems)


def test_a_path_that_is_another_problems_folder(tmp_path: Path, two_problems: Course) -> None:
    path = write(tmp_path / "work" / OTHER, {"problem.py": RIGHT})
    (found,) = take_in([path], two_problems, two_problems.select(["01"])[0]).submissions
    assert source(found) is None
    assert f"is for {OTHER}, which is not graded now" in found.files[ID].reason


# Several paths


def test_each_students_folder_as_a_path(tmp_path: Path, small_course: Course) -> None:
    """As the shell makes of class/*; the class folder gives the same."""
    folder = write(
        tmp_path / "class",
        {
            f"ada/{ID}/problem.py": RIGHT,
            f"bea/hw/{ID}/problem.py": RIGHT,
            "cho/1-doubling/problem.py": RIGHT,
            "dan/notes.txt": b"",
        },
    )
    (folder / "eli").mkdir()
    together = take_in([folder], small_course)
    alone = take_in(sorted(folder.iterdir()), small_course)
    assert alone.submissions == together.submissions
    assert [s.full_name for s in alone.submissions] == ["ada", "bea", "cho", "dan", "eli"]
    assert alone.unmatched == []


def test_one_name_at_two_paths(tmp_path: Path, small_course: Course) -> None:
    spring, fall = (
        write(tmp_path / term, {f"{name}/{ID}/problem.py": RIGHT for name in ("ada", other)})
        for term, other in (("spring", "bea"), ("fall", "cho"))
    )
    intake = take_in([spring, fall], small_course)
    identities = [s.identity for s in intake.submissions]
    assert identities == ["ada", "bea", "ada (fall/ada)", "cho"]
    assert intake.unmatched == ["'ada' is there twice: graded as 'ada' and 'ada (fall/ada)'."]


def _dangling(path: Path) -> None:
    path.symlink_to("nowhere")


def _circular(path: Path) -> None:
    path.symlink_to(path)


def _too_large(path: Path) -> None:
    path.mkdir()
    for number in range(6):
        (path / f"extra{number}").touch()


def _too_large_below(path: Path) -> None:
    path.mkdir()
    _too_large(path / "problems")


def _closed(path: Path) -> None:
    path.mkdir(mode=0)


ODD = {
    "dangling": (_dangling, "'bea' is a link; a link is not followed."),
    "circular": (_circular, "'bea' is a link; a link is not followed."),
    "too large": (_too_large, "'bea' holds more than 5 files and folders."),
    "too large below": (_too_large_below, "'bea' holds more than 5 files and folders."),
    "unreadable": (_closed, "'bea' can't be read (Permission denied)."),
}


@pytest.mark.skipif(sys.platform == "win32", reason="links and modes mean something else there")
@pytest.mark.parametrize(("make", "reason"), ODD.values(), ids=ODD)
def test_one_odd_path_of_several_is_a_row(
    tmp_path: Path,
    small_course: Course,
    monkeypatch: pytest.MonkeyPatch,
    make: Callable[[Path], None],
    reason: str,
) -> None:
    """A single such path is an error; next to others it is only reported."""
    monkeypatch.setattr(limits, "MAX_ENTRIES", 5)
    folder = write(tmp_path / "class", {f"{name}/{FILE}": RIGHT for name in ("ada", "cho")})
    open_to_all(tmp_path)
    make(folder / "bea")
    paths = sorted(folder.iterdir())
    ada, bea, cho = as_ordinary_user(lambda: find_submissions(paths, small_course))
    assert (source(ada), source(bea), source(cho)) == (RIGHT, None, RIGHT)
    assert (bea.files[ID].bad, bea.files[ID].reason) == (True, reason)
    with pytest.raises(SubmissionError, match="bea"):
        as_ordinary_user(lambda: find_submissions([folder / "bea"], small_course))


def test_a_linked_archive_of_several_paths(tmp_path: Path, small_course: Course) -> None:
    folder = write(tmp_path / "class", {"ada.zip": zip_file(COURSE)})
    (folder / "bea.zip").symlink_to("nowhere")
    ada, bea = find_submissions(sorted(folder.iterdir()), small_course)
    assert source(ada) == RIGHT
    assert_bad(bea, "'bea.zip' is a link")


def test_a_path_that_does_not_exist_is_refused_beside_others(
    tmp_path: Path, small_course: Course
) -> None:
    """It is a slip of the instructor's: nothing was handed in there."""
    folder = write(tmp_path / "class", {f"ada/{FILE}": RIGHT})
    with pytest.raises(SubmissionError, match="nobody does not exist"):
        find_submissions([folder / "ada", folder / "nobody"], small_course)


def test_a_file_beside_others_is_told(tmp_path: Path, small_course: Course) -> None:
    folder = write(tmp_path / "class", {f"ada/{FILE}": RIGHT, "grades.csv": b""})
    intake = take_in(sorted(folder.iterdir()), small_course)
    assert [s.name for s in intake.submissions] == ["ada"]
    assert len(intake.unmatched) == 1
    assert "grades.csv' was not used; a submission is a folder or an arch" in intake.unmatched[0]


METADATA = b"submission_1:\n  :submitters:\n  - :name: Bea\n    :email: bea@x.edu\n"
HOSTILE = {
    "gradescope": {"submission_metadata.yml": METADATA, f"submission_1/{FILE}": WRONG},
    "moodle": {
        f"Bea_8_assignsubmission_file/{FILE}": WRONG,
        f"C_9_assignsubmission_file/{FILE}": b"",
    },
    "canvas": {"bea_8_1_problem_01.py": WRONG, "cho_9_2_problem_01.py": WRONG},
    "class": {f"bea/{FILE}": WRONG, f"cho/{FILE}": WRONG},
}


@pytest.mark.parametrize("files", HOSTILE.values(), ids=HOSTILE)
def test_one_path_of_several_makes_no_rows_for_others(
    tmp_path: Path, small_course: Course, files: Files
) -> None:
    folder = write(tmp_path / "class", {f"{name}/{FILE}": RIGHT for name in ("ada", "bea", "cho")})
    write(folder / "mallory", files)
    found = find_submissions(sorted(folder.iterdir()), small_course)
    assert [s.identity for s in found] == ["ada", "bea", "cho", "mallory"]
    assert [source(s) for s in found[:3]] == [RIGHT, RIGHT, RIGHT]
    assert [s.members for s in found] == [()] * 4
    assert "give it by itself" in found[3].notes[0]


def test_several_downloads_are_classes(tmp_path: Path, small_course: Course) -> None:
    sections = [
        write(tmp_path / name, {f"ada_{n}_{n}_problem_01.py": RIGHT, f"b_{n}9_{n}9_x.py": b""})
        for n, name in enumerate(["north", "south"], 1)
    ]
    intake = take_in(sections, small_course)
    assert [s.identity for s in intake.submissions] == [f"canvas:{n}" for n in (1, 19, 2, 29)]
    assert intake.is_whole


@pytest.mark.skipif(sys.platform == "win32", reason="links mean something else there")
def test_a_link_among_several_paths_leads_nowhere(tmp_path: Path, small_course: Course) -> None:
    folder = write(tmp_path / "class", {f"ada/{FILE}": RIGHT})
    write(tmp_path / "secret", {FILE: RIGHT})
    (folder / "bea").symlink_to(tmp_path / "secret")
    (folder / "cho").symlink_to("/")
    ada, bea, cho = find_submissions(sorted(folder.iterdir()), small_course)
    assert (source(ada), source(bea), source(cho)) == (RIGHT, None, None)
    assert bea.files[ID].reason == "'bea' is a link; a link is not followed."


# One student's folder out of a download


PARTS = {
    "moodle": (f"Bea_8_assignsubmission_file/{FILE}", {f"C_9_assignsubmission_file/{FILE}": RIGHT}),
    "canvas": ("bea_8_1_hw.zip", {"cho_9_2_hw.zip": zip_file(COURSE)}),
    "github": (f"hw-bea/{FILE}", {f"hw-cho/{FILE}": RIGHT}),
    "gradescope": (
        f"submission_1/{FILE}",
        {"submission_metadata.yml": METADATA, f"submission_2/{FILE}": RIGHT},
    ),
}
AROUND = {"github": "hw_submissions_2026_11_24_T_09_05_00"}


@pytest.mark.parametrize("platform", PARTS)
def test_one_folder_of_a_download_is_the_same_student(
    tmp_path: Path, small_course: Course, platform: str
) -> None:
    own, others = PARTS[platform]
    content = zip_file(COURSE) if own.endswith(".zip") else RIGHT
    folder = write(tmp_path / AROUND.get(platform, "week1"), {own: content, **others})
    every = take_in([folder], small_course)
    alone = take_in([folder / own.partition("/")[0]], small_course)
    (found,) = alone.submissions
    assert found == next(s for s in every.submissions if s.identity == found.identity)
    assert found.identity.startswith(f"{platform}:")
    assert source(found) == RIGHT
    assert (every.is_whole, alone.is_whole) == (True, False)


def test_one_archive_of_a_class_of_archives_with_dates(
    tmp_path: Path, small_course: Course
) -> None:
    names = ["ada_2024_12_hw.zip", "bea_2024_12_hw.zip"]
    folder = write(tmp_path / "class", {name: zip_file(COURSE) for name in names})
    (found,) = find_submissions([folder / names[0]], small_course)
    assert found.identity == "ada_2024_12_hw"


def test_one_archive_alone_has_nothing_beside_it_looked_at(
    tmp_path: Path, small_course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other files in a folder of downloads are ignored."""
    (tmp_path / "ada.zip").write_bytes(zip_file({FILE: RIGHT}))
    (tmp_path / "tax.zip").write_bytes(b"private")
    looked: list[str] = []

    def look(platform: object, download: Download, problems: object) -> None:
        looked.append(download.name)

    for kind in (platforms.NamedUploads, platforms.ListedFolders):
        monkeypatch.setattr(kind, "look", look)
    (ada,) = find_submissions([tmp_path / "ada.zip"], small_course)
    assert ada.files[ID].source == RIGHT
    assert not looked
