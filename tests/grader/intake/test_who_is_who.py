"""No student can take another one's identity or file by choosing a name."""

from __future__ import annotations

import random
import sys
import unicodedata
from pathlib import Path

import pytest

from grader.course import Course
from grader.intake.identity import result_name
from grader.intake.submissions import find_submissions, take_in
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


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_people_keep_their_names_in_any_script(take: Take, name: str) -> None:
    intake = take({f"{name}/{ID}/problem.py": RIGHT, f"ada/{ID}/problem.py": RIGHT})
    found = next(s for s in intake.submissions if s.name != "ada")
    whole = unicodedata.normalize("NFC", name)
    assert (found.identity, found.full_name) == (whole, whole)
    assert found.name.isascii()
    assert found.notes == []


def test_a_canvas_student_is_the_user_number(take: Take) -> None:
    """Names of Chinese characters must not become `__` and `__-2`, numbered in each download."""
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
def test_a_name_cannot_be_taken(tmp_path: Path, small_course: Course) -> None:
    taking = ["  name  ", " name", ".name", "name.", "NAME", "nam\u00e9", "name\u200b", "name-2"]
    folder = write(tmp_path / "class", {f"{n}/{ID}/problem.py": WRONG for n in taking})
    write(folder, {f"name/{ID}/problem.py": RIGHT})
    found = find_submissions(folder, small_course)
    assert {s.name: source(s) for s in found}["name"] == RIGHT
    assert {s.identity for s in found} == {"name", *taking}
    assert len({s.name.lower() for s in found}) == len(found)
    for name in ("name", "NAME"):
        (alone,) = find_submissions(folder / name, small_course)
        assert alone.name == next(s.name for s in found if s.identity == name)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems see one name there")
def test_one_name_in_two_forms_is_said(tmp_path: Path, small_course: Course) -> None:
    """Unicode has two forms of é that look the same; only one of the two can be the student's."""
    forms = [unicodedata.normalize(form, "rené") for form in ("NFC", "NFD")]
    folder = write(tmp_path / "class", {f"{form}/{ID}/problem.py": RIGHT for form in forms})
    intake = take_in(folder, small_course)
    assert len({s.identity for s in intake.submissions}) == 2
    assert {s.identity: s.full_name for s in intake.submissions}[forms[0]] == forms[0]
    assert any("'rené' is there twice" in line for line in intake.unmatched)


def test_a_folder_that_is_called_as_an_archive(tmp_path: Path, small_course: Course) -> None:
    """Only an archive is identified by its name without the ending."""
    folder = write(tmp_path / "class", {f"ada.zip/{ID}/problem.py": WRONG})
    write(folder, {"bea.tar.gz": zip_file(COURSE), "cho.rar": b""})
    found = find_submissions(folder, small_course)
    assert [s.identity for s in found] == ["ada.zip", "bea", "cho"]
    paths = sorted(folder.iterdir())
    alone = [find_submissions(path, small_course)[0].identity for path in paths]
    assert alone == ["ada.zip", "bea", "cho"]


def test_a_folder_cannot_be_called_a_platforms_student(take: Take) -> None:
    intake = take({f"canvas:12/{ID}/problem.py": RIGHT, f"ada/{ID}/problem.py": RIGHT})
    assert {s.identity for s in intake.submissions} == {"folder:canvas:12", "ada"}


def test_no_file_is_anothers() -> None:
    """A plain folder may have the name of another submission's result file."""
    taken = result_name("canvas:12", "ada")
    names = [taken, taken.upper(), "ada", "Ada", "nul", "a" * 101, "a" * 101 + "b", "é", "e"]
    found = [result_name(name, name) for name in names]
    assert len({name.lower() for name in [*found, taken]}) == len(names) + 1
    assert result_name("ada", "ada") == "ada"
    assert result_name("chen wei", "chen wei") == "chen wei"


@pytest.mark.parametrize("name", ["王芳", "نیک", "Zoë"])
def test_a_zip_that_does_not_say_utf_8(tmp_path: Path, small_course: Course, name: str) -> None:
    """As macOS packs it. It belongs to the same student as a folder."""
    packed = zip_file({f"{name}/{ID}/problem.py": RIGHT, f"ada/{ID}/problem.py": RIGHT})
    path = tmp_path / "class.zip"
    # The flag is in each member's head, and again in the list of members.
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        parts = packed.split(mark)
        packed = mark.join([parts[0], *(_without_flag(part, place - 4) for part in parts[1:])])
    path.write_bytes(packed)
    found = find_submissions(path, small_course)
    assert {s.identity for s in found} == {name, "ada"}


def _without_flag(part: bytes, place: int) -> bytes:
    return part[:place] + bytes([part[place], part[place + 1] & ~0x08]) + part[place + 2 :]


# Names by chance


def random_name(rng: random.Random) -> str:
    """Return a name of letters, marks, spaces and signs from all of Unicode."""
    if rng.random() < 0.3:
        return "".join(rng.choices("aAbB. -_é'", k=rng.randint(1, 4)))
    letters: list[str] = []
    while len(letters) < rng.randint(1, 12):
        letter = chr(rng.randrange(0x20, 0x30000))
        if unicodedata.category(letter) not in {"Cs", "Cn", "Co", "Cc"} and letter not in "/\\:":
            letters.append(letter)
    return "".join(letters)


def random_names(rng: random.Random, count: int) -> list[str]:
    """Return names that a file system distinguishes, without names of dots only."""
    names = {random_name(rng) for _ in range(count)}
    return sorted(n for n in names if n.strip(".") and len(n.encode()) < 200)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems don't allow such names")
def test_any_names_stay_apart_and_the_same(tmp_path: Path, small_course: Course) -> None:
    """In two runs with other students; only two spellings of one name depend on each other."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")  # noqa: T201
    rng = random.Random(seed)
    names = {unicodedata.normalize("NFC", n): n for n in [*random_names(rng, 100), *NAMES.values()]}
    folders = [n for n in names.values() if not n.startswith("._") and n not in {".", ".."}]
    runs = []
    for week in range(2):
        chosen = rng.sample(folders, 2 * len(folders) // 3)
        files = {f"{name}/{ID}/problem.py": str(folders.index(name)).encode() for name in chosen}
        found = find_submissions(write(tmp_path / f"week{week}", files), small_course)
        assert len(found) == len(chosen)
        for submission in found:
            content = source(submission)
            assert content is not None
            name = folders[int(content)]
            assert submission.identity.removeprefix("folder:") == unicodedata.normalize("NFC", name)
        runs.append({s.identity: s.name for s in found})
    assert len(set(runs[0].values())) == len(runs[0])
    assert all(runs[1][who] == runs[0][who] for who in runs[0].keys() & runs[1].keys())
    both = runs[0] | runs[1]
    assert len({name.lower() for name in both.values()}) == len(both)
