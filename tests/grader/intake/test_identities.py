"""No student can get the identity or the file of a different student by choosing a name."""

from __future__ import annotations

import os
import sys
import unicodedata
from pathlib import Path

import pytest

from grader.course import Course
from grader.intake.identity import result_name
from grader.intake.submissions import find_submissions, read_submissions
from tests.grader.intake.uploads import COURSE, ID, RIGHT, WRONG, Take, source, write, zip_file

NAMES = {
    "Latin": "Zoë Müller-Đặng",
    "Cyrillic": "Мария Петрова",
    "Greek": "Ελένη Παπαδοπούλου",
    "Arabic": "فاطمة الزهراء",
    "Persian": "نیک\u200cآیین",
    "Hebrew": "נועה כהן",
    "Han": "王芳",
    "Kana": "さくら",
    "Hangul": "김민준",
    "Devanagari": "प्रिया शर्मा",
    "Tamil": "கவிதா",
    "Thai": "สมชาย",
    "Georgian": "ნინო",
    "Amharic": "ሰላም",
}


def test_people_keep_their_names_in_any_script(take: Take) -> None:
    intake = take({f"{name}/{ID}/problem.py": RIGHT for name in NAMES.values()})
    whole = {unicodedata.normalize("NFC", name) for name in NAMES.values()}
    assert {s.identity for s in intake.submissions} == whole
    assert {s.full_name for s in intake.submissions} == whole
    names = {s.name.lower() for s in intake.submissions}
    assert len(names) == len(NAMES)
    assert "".join(names).isascii()
    assert not any(s.notes for s in intake.submissions)


SHOWN = {
    "a\nb": "a b",
    "é\u202e": "é\ufffd",
    "\x1b[2J\x07": "\ufffd[2J\ufffd",
    os.fsdecode(b"\xff\xfe\x80"): "\ufffd\ufffd\ufffd",
}
ODD_NAMES = ["a b", "ü", "-x", "=1+1", "x" * 255, "a;rm -rf", "..hidden..", "nul", "ß" * 120]
ODD_NAMES += ["<script>alert(1)<", "[x](javascript:1)", "{{7*7}}${IFS}`id`", *SHOWN]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems don't allow such names")
def test_odd_names_are_kept(tmp_path: Path, small_course: Course) -> None:
    folder = write(tmp_path / "class", {f"{name}/{ID}/problem.py": RIGHT for name in ODD_NAMES})
    submissions = find_submissions(folder, small_course)
    assert {s.identity: s.full_name for s in submissions} == {n: SHOWN.get(n, n) for n in ODD_NAMES}
    for submission in submissions:
        assert source(submission) == RIGHT
        assert submission.name.isascii()
        assert submission.name.isprintable()
        assert not set(submission.name) & set("/\\<>|`$\"'*?:[](){}")
        assert not submission.name.startswith(".")


def test_canvas_numbers_identify_students(take: Take) -> None:
    """Canvas reduces a Chinese name to `__`."""
    both = take(
        {"王芳_1004_90_problem_01.py": RIGHT, "李娜_1005_91_problem_01.py": WRONG}
    ).submissions
    assert {s.identity: s.full_name for s in both} == {"canvas:1004": "王芳", "canvas:1005": "李娜"}
    (alone,) = take({"李娜_1005_92_problem_01.py": RIGHT}, name="week 2").submissions
    assert alone.name in [s.name for s in both if s.identity == "canvas:1005"]


def test_students_of_one_name_are_distinguished(take: Take) -> None:
    intake = take({"ada_12_98_problem_01.py": RIGHT, "ada_13_99_problem_01.py": WRONG})
    first, second = intake.submissions
    assert (source(first), source(second)) == (RIGHT, WRONG)
    assert first.full_name == second.full_name == "ada"
    assert first.name != second.name
    assert intake.unmatched == []


@pytest.mark.skipif(sys.platform != "linux", reason="other systems don't allow such names")
def test_a_students_name_cannot_be_taken(tmp_path: Path, small_course: Course) -> None:
    taking = ["  name  ", " name", ".name", "name.", "NAME", "nam\u00e9", "name\u200b", "name-2"]
    folder = write(tmp_path / "class", {f"{n}/{ID}/problem.py": WRONG for n in taking})
    write(folder, {f"name/{ID}/problem.py": RIGHT})
    submissions = find_submissions(folder, small_course)
    assert {s.name: source(s) for s in submissions}["name"] == RIGHT
    assert {s.identity for s in submissions} == {"name", *taking}
    assert len({s.name.lower() for s in submissions}) == len(submissions)
    for name in ("name", "NAME"):
        (alone,) = find_submissions(folder / name, small_course)
        assert alone.name == next(s.name for s in submissions if s.identity == name)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems see only one name")
def test_one_name_in_two_forms_is_reported(tmp_path: Path, small_course: Course) -> None:
    """The names contain the two Unicode forms of é."""
    forms = [unicodedata.normalize(form, "rené") for form in ("NFC", "NFD")]
    folder = write(tmp_path / "class", {f"{form}/{ID}/problem.py": RIGHT for form in forms})
    intake = read_submissions(folder, small_course)
    assert len({s.identity for s in intake.submissions}) == 2
    assert {s.identity: s.full_name for s in intake.submissions}[forms[0]] == forms[0]
    assert any("'rené' was submitted twice" in line for line in intake.unmatched)


def test_a_folder_called_zip_keeps_its_name(tmp_path: Path, small_course: Course) -> None:
    """Only an archive loses the ending `.zip`."""
    folder = write(tmp_path / "class", {f"ada.zip/{ID}/problem.py": WRONG})
    write(folder, {"bea.tar.gz": zip_file(COURSE), "cho.rar": b""})
    submissions = find_submissions(folder, small_course)
    assert [s.identity for s in submissions] == ["ada.zip", "bea", "cho"]
    paths = sorted(folder.iterdir())
    alone = [find_submissions(path, small_course)[0].identity for path in paths]
    assert alone == ["ada.zip", "bea", "cho"]


def test_a_folder_name_gives_no_platform_identity(take: Take) -> None:
    intake = take({f"canvas:12/{ID}/problem.py": RIGHT, f"ada/{ID}/problem.py": RIGHT})
    assert {s.identity for s in intake.submissions} == {"folder:canvas:12", "ada"}


def test_no_result_file_replaces_that_of_another_submission() -> None:
    taken = result_name("canvas:12", "ada")
    names = [taken, taken.upper(), "ada", "Ada", "nul", "a" * 101, "a" * 101 + "b", "é", "e"]
    result_names = [result_name(name, name) for name in names]
    assert len({name.lower() for name in [*result_names, taken]}) == len(names) + 1
    assert result_name("ada", "ada") == "ada"
    assert result_name("chen wei", "chen wei") == "chen wei"


@pytest.mark.parametrize("name", ["王芳", "نیک", "Zoë"])
def test_a_zip_without_utf_8_flag_is_read(tmp_path: Path, small_course: Course, name: str) -> None:
    """Such zip files come from macOS."""
    packed = zip_file({f"{name}/{ID}/problem.py": RIGHT, f"ada/{ID}/problem.py": RIGHT})
    path = tmp_path / "class.zip"
    # The flag is in each member's header, and again in the list of members.
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        parts = packed.split(mark)
        packed = mark.join([parts[0], *(_without_flag(part, place - 4) for part in parts[1:])])
    path.write_bytes(packed)
    submissions = find_submissions(path, small_course)
    assert {s.identity for s in submissions} == {name, "ada"}


def _without_flag(part: bytes, place: int) -> bytes:
    return part[:place] + bytes([part[place], part[place + 1] & ~0x08]) + part[place + 2 :]
