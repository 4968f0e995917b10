"""Submissions with odd content, or with other files next to them, are graded correctly.

The tests in `tests/grader/intake` check which files are read and which are refused.
"""

import hashlib
import py_compile
import sys

import pytest

from grader.errors import InternalError
from grader.grade.pool import grade_all
from grader.grade.settings import Settings
from grader.intake.submissions import find_submissions
from tests.grader.intake.uploads import FILE, ID, write

RIGHT = "def double(x):\n    return x + x\n"
TEXT = "# Größe: doppelt\n" + RIGHT


@pytest.fixture
def hand_in(tmp_path):
    """Return a function that writes the submission of a student, `ada`, and returns the folder of
    its problem.
    """
    return lambda content=RIGHT: write(tmp_path / "class/ada", {FILE: content}) / ID


def found(folder, course):
    """Return all submissions of a class by name. `folder` is a problem's folder in the class."""
    return {s.name: s for s in find_submissions(folder.parents[1], course)}


def graded(grade, submission):
    return grade.result(submission).problems[0]


# Content of the file

CONTENTS = {
    "windows line ends": (RIGHT.replace("\n", "\r\n").encode(), "passed", ""),
    "old mac line ends": (RIGHT.replace("\n", "\r").encode(), "passed", ""),
    "no last line end": (RIGHT.strip().encode(), "passed", ""),
    "byte order mark": (TEXT.encode("utf-8-sig"), "passed", ""),
    "utf-16": (TEXT.encode("utf-16"), "error", "can't be read as Python"),
    "latin-1": (TEXT.encode("latin-1"), "error", "can't be read as Python"),
    "latin-1, in a text": (b"x = 1\ny = '\xfc'\n", "error", "line 2"),
    "latin-1, declared": (b"# coding: latin-1\n" + TEXT.encode("latin-1"), "passed", ""),
    "unknown coding": (b"# coding: klingon\n" + RIGHT.encode(), "error", "klingon"),
    "two codings": (b"# coding: latin-1\n" + TEXT.encode("utf-8-sig"), "error", "line 2"),
    "zero bytes": (RIGHT.encode() + b"\0", "error", "can't be read as Python"),
    "a compiled file": (b"\xa7\r\r\n" + bytes(range(256)), "error", "can't be read as Python"),
    "half a file": (RIGHT.replace("x + x", "(x +").encode(), "error", "line 2"),
    "tabs and spaces": (b"def double(x):\n\ty = x\n        return y\n", "error", "line 3"),
    "python 2": (b"def double(x):\n    print x\n", "error", "line 2: print x"),
    "a return outside": (b"return 1\n", "error", "outside function"),
    "brackets": (b"(" * 900_000, "error", "nested"),
    "minus signs": (b"x = " + b"-" * 900_000 + b"1\n", "error memory crash", ""),
    "a long chain": (b"x = 1" + b" + 1" * 200_000 + b"\n", "error memory crash missing", ""),
    "only comments": (b"# nothing yet\n", "missing", ""),
    "only blanks": (b" \n\t\n", "missing", ""),
    "the untouched stub": (
        b"def double(x):\n    raise NotImplementedError\n",
        "not_implemented",
        "",
    ),
    "merge conflict": (b"<<<<<<< HEAD\n" + RIGHT.encode(), "error", "line 1"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CONTENTS)
def test_odd_content_of_a_file(grade, hand_in, name):
    content, statuses, words = CONTENTS[name]
    submission = found(hand_in(content), grade.course)["ada"]
    assert submission.files["01-doubling"].sha256 == hashlib.sha256(content).hexdigest()
    result = graded(grade, submission)
    assert len(result.tests) == 3
    assert {test.status.value for test in result.tests} <= set(statuses.split())
    assert result.points == (4 if statuses == "passed" else 0)
    message = result.tests[0].message
    assert words in message
    assert len(message) < 5000
    assert all(c.isprintable() or c in "\n\t" for c in message)


# Files next to the file

PLANTED = {
    "conftest.py": "import os\nos._exit(0)\n",
    "test_doubling.py": "def test_doubles():\n    pass\n",
    "pyproject.toml": '[tool.pytest.ini_options]\naddopts = "--collect-only"\n',
    "pytest.ini": "[pytest]\naddopts = --collect-only\n",
    "tox.ini": "[pytest]\naddopts = --collect-only\n",
    "sitecustomize.py": "import os\nos._exit(0)\n",
    "usercustomize.py": "import os\nos._exit(0)\n",
    "numpy.py": "raise SystemExit\n",
    "torch/__init__.py": "raise SystemExit\n",
    "planted.pth": "import os; os._exit(0)\n",
    "__init__.py": "raise SystemExit\n",
    "results.json": '{"status": "graded", "points": 4}',
    "gradebook.csv": "submission,status,total\nada,graded,4\n",
    ".git/hooks/post-checkout": "#!/bin/sh\nexit 0\n",
    ".venv/bin/python": "#!/bin/sh\nexit 0\n",
}


@pytest.mark.parametrize(("content", "points"), [(RIGHT, 4), ("def double(x):\n    return x\n", 0)])
def test_other_files_next_to_the_submission_change_nothing(grade, hand_in, content, points):
    folder = hand_in(content)
    for place in (folder, folder.parent, folder.parents[1]):
        for name, text in PLANTED.items():
            if place != folder.parents[1] or "." in name.strip("."):
                (place / name).parent.mkdir(parents=True, exist_ok=True)
                (place / name).write_text(text)
    result = graded(grade, found(folder, grade.course)["ada"])
    assert (result.points, result.max) == (points, 4)


def test_a_compiled_file_next_to_the_submission_is_not_run(grade, hand_in):
    """By default, Python would run the compiled file instead of the source file."""
    folder = hand_in("def double(x):\n    return 3 * x\n")
    source = folder / "problem.py"
    (folder / "right.py").write_text(RIGHT)
    (folder / "__pycache__").mkdir()
    name = folder / "__pycache__" / f"problem.{sys.implementation.cache_tag}.pyc"
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(folder / "right.py"), cfile=str(name), invalidation_mode=mode)
    result = graded(grade, found(source.parent, grade.course)["ada"])
    assert {test.status.value for test in result.tests} == {"failed"}


def test_the_hash_belongs_to_the_graded_bytes(grade, hand_in):
    """The file is read once. Later changes affect neither the verdict nor the hash."""
    folder = hand_in()
    submission = found(folder, grade.course)["ada"]
    (folder / "problem.py").write_text("def double(x):\n    return x\n")
    result = graded(grade, submission)
    assert result.points == 4
    assert result.sha256 == hashlib.sha256(RIGHT.encode()).hexdigest()


# Mistakes of the instructor


def class_of_one(course, hand_in):
    return find_submissions(hand_in().parents[1], course)


@pytest.mark.slow
@pytest.mark.usefixtures("lent")
def test_a_failing_test_of_the_course_gives_no_student_zero_points(small_course, hand_in):
    """The tests run with the reference first. If the reference fails, no student is graded."""
    test_file = small_course.problems()[0].test_file
    broken = test_file.read_text().replace("x = rng.normal(3)", "x = rng.normal(3) + undefined")
    test_file.write_text(broken)
    results = []
    with pytest.raises(InternalError, match="test_hidden cannot run with the reference"):
        grade_all(class_of_one(small_course, hand_in), small_course, Settings(), 1, results.append)
    assert results == []
