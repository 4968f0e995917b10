"""`names.csv` assigns names of files and folders to problems and students."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.course import Course
from grader.errors import UsageError
from grader.intake.names_file import Names, read_names
from grader.intake.submissions import read_submissions
from tests.grader.intake.uploads import (
    ID,
    OTHER,
    RIGHT,
    WRONG,
    Files,
    source,
    write,
    zip_file,
)

KNOWN = (ID, OTHER)


def test_names_csv_assigns_problems_and_students(tmp_path: Path) -> None:
    path = tmp_path / "names.csv"
    assert read_names(path, KNOWN) == Names()
    lines = [
        "\ufefffound,note,means",
        "dubbeling.py,,01",
        "twice,,doubling",
        "Ada hw,who?,王芳",
        ",,",
    ]
    path.write_text("\r\n".join(lines), encoding="utf-8")
    assert read_names(path, KNOWN) == Names({"dubbeling.py": ID, "twice": ID}, {"Ada hw": "王芳"})


def test_a_file_of_a_spreadsheet_is_read(tmp_path: Path) -> None:
    """A line that begins with `#` is not a comment."""
    path = tmp_path / "names.csv"
    path.write_text("Found;Means\n#2.py;02\n\na, b;ada\n")
    assert read_names(path, KNOWN) == Names({"#2.py": OTHER}, {"a, b": "ada"})


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"name,means\n", "must have the columns found and means"),
        (b"", "is empty"),
        (
            b"found,means\nx,01\nx,02\n",
            "line 3: 'x' can't mean both '01-doubling' and '02-tripling'",
        ),
        (b"found,means\nx,ada\nx,bea\n", "line 3: 'x' can't mean both 'ada' and 'bea'"),
        (
            b"found,means\nx.py,01-dubling\n",
            "line 2: 'x.py' is a file, so it can mean a problem but",
        ),
        (b"found,means\nbob.py,Bob\n", "not 'Bob'. If 'Bob' submitted it, move it to a f"),
        (b"found,means\nx.ipynb,01\n", "line 2: 'x.ipynb' is a notebook, which is not graded"),
        (b"found,means\n\xff,ada\n", "save it as 'CSV UTF-8'"),
        (b'found,means\n"x,ada\n', "is not a CSV file: unexpected end of data"),
    ],
)
def test_an_invalid_file_stops_the_run(tmp_path: Path, content: bytes, why: str) -> None:
    path = tmp_path / "names.csv"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=why):
        read_names(path, KNOWN)


MEANT = {"dubbeling.py": ID, "twice": ID, "my-task": ID}
PLACES: dict[str, Files] = {
    "a single file": {"dubbeling.py": RIGHT},
    "a folder": {"twice/problem.py": RIGHT},
    "a folder below": {"hw/twice/problem.py": RIGHT},
    "below problems": {"problems/twice/problem.py": RIGHT},
    "a file in the folder": {f"{ID}/dubbeling.py": RIGHT},
    "both": {"twice/dubbeling.py": RIGHT},
    "an archive": {"hw.zip": zip_file({"twice/problem.py": RIGHT})},
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("files", PLACES.values(), ids=PLACES)
def test_an_assigned_name_is_read_as_its_problem(
    tmp_path: Path, small_course: Course, files: Files, packed: bool
) -> None:
    folder = write(tmp_path / "class", {f"bea/{ID}/problem.py": WRONG})
    if packed:
        write(folder, {"ada.zip": zip_file(files)})
    else:
        write(folder / "ada", files)
    ada, bea = read_submissions(folder, small_course, problems_by_name=MEANT).submissions
    assert (source(ada), source(bea)) == (RIGHT, WRONG)


def test_names_in_a_platforms_download_are_assigned(tmp_path: Path, small_course: Course) -> None:
    path = tmp_path / "submissions.zip"
    path.write_bytes(zip_file({"ada_12_98_dubbeling.py": RIGHT, "bea_13_99_x.py": RIGHT}))
    ada, bea = read_submissions(path, small_course, problems_by_name=MEANT).submissions
    assert (source(ada), source(bea)) == (RIGHT, None)
    assert ada.notes == ["'dubbeling.py' was read as 01-doubling."]


def test_the_standard_name_is_preferred_to_an_assigned_name(
    tmp_path: Path, small_course: Course
) -> None:
    """If a student used two assigned names for a problem, neither is chosen."""
    folder = write(
        tmp_path / "class",
        {
            f"ada/{ID}/problem.py": RIGHT,
            "ada/twice/problem.py": WRONG,
            "bea/twice/problem.py": WRONG,
            "bea/my-task/problem.py": RIGHT,
        },
    )
    ada, bea = read_submissions(folder, small_course, problems_by_name=MEANT).submissions
    assert (source(ada), source(bea)) == (RIGHT, None)
