"""The Gradescope archive grades a submission in Gradescope's folder layout."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grader.course import Course, own_course
from grader.errors import CourseError, InternalError
from grader.grade.autograder import build, grade_uploaded
from grader.grade.outcome import internal_result
from grader.grade.packing import FOR_AN_AUTOGRADER
from grader.grade.settings import Settings
from grader.result import Policy, Status
from tests.conftest import add_problem
from tests.grader.intake.uploads import RIGHT, write
from tests.results import doubles, result_of


@pytest.fixture
def small_course(small_course: Course) -> Course:
    """Add a lock file and a second problem to the small course."""
    (small_course.root / "uv.lock").write_text(LOCK)
    add_problem(small_course.root, "02-halving")
    return small_course


LOCK = """
version = 1
[[package]]
name = "attention-course"
version = "0.2.0"
source = { editable = "." }
[[package]]
name = "numpy"
version = "2.4.6"
source = { registry = "https://pypi.org/simple" }
resolution-markers = ["python_full_version < '3.12'"]
[[package]]
name = "numpy"
version = "2.5.5"
source = { registry = "https://pypi.org/simple" }
resolution-markers = ["python_full_version >= '3.15'", "python_full_version >= '3.12'"]
[[package]]
name = "torch"
version = "2.15.0"
source = { registry = "https://pypi.org/simple" }
"""


def write_submission(root: Path, *names: str) -> None:
    write(root / "submission", {f"{name}/problem.py": RIGHT for name in names})


def upload_results(
    root: Path,
    course: Course,
    status: Status = Status.PASSED,
    only: str = "",
    part: str | None = None,
) -> dict[str, Any]:
    """Grade a submission so that each test gets `status`. Return the results for Gradescope."""

    def grade(submissions, course, settings, jobs, on_result):  # type: ignore[no-untyped-def]
        (submission,) = submissions
        problems = {problem.id: problem for problem in course.problems()}
        needed = {id for id, problem in problems.items() if not problem.part.optional}
        assert needed <= submission.files.keys() <= problems.keys()
        found = [
            replace(problems[id].result(), tests=[doubles(status)], notes=[file.reason])
            for id, file in submission.files.items()
        ]
        result = result_of(submission.name, *found)
        on_result(internal_result("x", "a fault") if status is Status.INTERNAL else result)

    problem = course.select([only])[0] if only else None
    grade_uploaded(root, course, Settings(), Policy.TITLES, grade, problem, part)
    return json.loads((root / "results/results.json").read_text())


@pytest.mark.parametrize(
    ("names", "only", "words"),
    [
        ([], "", "Submit 01-doubling/problem.py, 02-halving/problem.py"),
        ([], "02", "Submit problem.py."),
        (["a/01-doubling", "b/01-doubling"], "", "several submissions (a, b)"),
    ],
)
def test_a_missing_submission_and_several_submissions_are_reported(
    tmp_path: Path, small_course: Course, names: list[str], only: str, words: str
) -> None:
    (tmp_path / "submission").mkdir()
    write_submission(tmp_path, *names)
    data = upload_results(tmp_path, small_course, only=only)
    assert data["score"] == 0
    assert words in str(data["output"])


@pytest.mark.parametrize(
    ("files", "found"),
    [
        (["problem.py"], True),
        (["halving.py"], True),
        (["02-halving/problem.py"], True),
        (["problems/01-doubling/problem.py", "problems/02-halving/problem.py"], True),
        (["01-doubling/problem.py", "02-halving/problem.py"], True),
        (["01-doubling/problem.py"], False),
    ],
)
def test_a_bare_file_is_accepted_for_one_problem(
    tmp_path: Path, small_course: Course, files: list[str], found: bool
) -> None:
    """A file of a different problem is reported, and never graded as the given problem."""
    write(tmp_path / "submission", dict.fromkeys(files, RIGHT))
    (test,) = upload_results(tmp_path, small_course, only="02")["tests"]
    assert test["name"].startswith("02-halving:")
    assert ("There is no problem.py" in test["output"]) is not found


def test_an_internal_error_gives_no_score(tmp_path: Path, small_course: Course) -> None:
    write_submission(tmp_path, "01-doubling")
    data = upload_results(tmp_path, small_course)
    assert [test["score"] for test in data["tests"]] == [4, 4]
    assert data["score"] == 8
    with pytest.raises(InternalError, match="a fault"):
        upload_results(tmp_path, small_course, Status.INTERNAL)
    assert not (tmp_path / "results/results.json").exists()


def test_a_students_copy_builds_no_autograder(tmp_path: Path, small_course: Course) -> None:
    small_course.solution(small_course.problems()[0]).unlink()
    with pytest.raises(CourseError, match="instructor's copy"):
        build(small_course, tmp_path, "sandbox", Policy.TITLES)


@pytest.mark.slow
def test_the_same_course_gives_the_same_archive(tmp_path: Path) -> None:
    archives = [build(own_course(), tmp_path / n, "sandbox", Policy.TITLES) for n in ("a", "b")]
    assert archives[0].read_bytes() == archives[1].read_bytes()
    with zipfile.ZipFile(archives[0]) as archive:
        names = set(archive.namelist())
        modes = {n: archive.getinfo(n).external_attr >> 16 for n in ("setup.sh", "run_autograder")}
    assert all(mode & stat.S_IXUSR for mode in modes.values())
    assert {
        "course/pyproject.toml",
        "course/grader/reports/templates/base.html.j2",
        "course/problems/shared/worked_example.py",
        "course/problems/01-softmax/probe.py",
        "course/problems/01-softmax/fingerprints.json",
        "course/solutions/01-softmax/problem.py",
    } <= names
    assert not [name for name in names if name.endswith((".edits", ".pyc"))]
    parts = {name.split("/")[2] for name in names if name.startswith("course/grader/")}
    assert {part for part in parts if "." not in part} == {*FOR_AN_AUTOGRADER}


def test_an_archive_for_one_problem_has_no_other_tests(tmp_path: Path) -> None:
    course = own_course()
    (problem,) = course.select(["03"])
    path = build(course, tmp_path, "sandbox", Policy.TITLES, problem)
    assert path.name == "autograder-03-scaled-attention.zip"
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        run = archive.read("run_autograder").decode()
        other = archive.read("course/problems/01-softmax/test_softmax.py").decode()
    assert "--problem 03-scaled-attention" in run
    assert [name for name in names if "/solutions/" in name] == [
        "course/solutions/03-scaled-attention/problem.py",
        "course/solutions/03-scaled-attention/salt.txt",
    ]
    assert other.startswith("#")
    assert len(other.splitlines()) == 1
    assert "course/problems/03-scaled-attention/test_scaled_attention.py" in names
    assert "course/problems/01-softmax/probe.py" not in names


@pytest.mark.parametrize(
    ("names", "part", "score", "graded"),
    [
        (["01-doubling", "06-doubling"], None, 4, ["01", "06"]),
        (["01-doubling"], None, 4, ["01"]),
        (["01-doubling", "06-doubling", "07-doubling"], "two", 8, ["06", "07"]),
        (["01-doubling", "06-doubling"], "one", 4, ["01"]),
        (["01-doubling"], "two", 0, []),
    ],
)
def test_the_score_belongs_to_the_part_of_the_assignment(
    tmp_path: Path,
    two_parts: Course,
    names: list[str],
    part: str | None,
    score: float,
    graded: list[str],
) -> None:
    write_submission(tmp_path, *names)
    data = upload_results(tmp_path, two_parts, part=part)
    assert data["score"] == score
    assert [test["name"][:2] for test in data.get("tests", ())] == graded
    assert graded or "Submit 06-doubling/problem.py, 07-doubling/problem.py." in data["output"]


def test_an_archive_for_one_part_recognizes_other_parts(tmp_path: Path, two_parts: Course) -> None:
    (two_parts.root / "uv.lock").write_text(LOCK)
    path = build(two_parts, tmp_path, "sandbox", Policy.TITLES, part="one")
    assert path.name == "autograder-part-one.zip"
    with zipfile.ZipFile(path) as archive:
        assert "--part one" in archive.read("run_autograder").decode()
        archive.extractall(tmp_path)
    packed = Course(tmp_path / "course")
    assert [problem.part.id for problem in packed.problems()] == ["one", "two", "two"]
    assert [problem.id for problem in packed.of_part("one")] == ["01-doubling"]
    assert not packed.solution(packed.problems()[1]).exists()


def test_versions_come_from_the_lock_file(tmp_path: Path, small_course: Course) -> None:
    path = build(small_course, tmp_path, "sandbox", Policy.TITLES)
    with zipfile.ZipFile(path) as archive:
        constraints = archive.read("course/constraints.txt").decode().splitlines()
    assert constraints == [
        "numpy==2.4.6 ; (python_full_version < '3.12')",
        "numpy==2.5.5 ; (python_full_version >= '3.15') or (python_full_version >= '3.12')",
        "torch==2.15.0",
    ]
    (small_course.root / "uv.lock").unlink()
    with pytest.raises(CourseError, match="package versions from uv.lock"):
        build(small_course, tmp_path, "sandbox", Policy.TITLES)


FAKE_PYTHON = """#!{bash}
# Records its arguments, and returns the exit statuses that the test requires.
case "$1 $2" in
  "-c "*) exit {too_old} ;;
  "--version "*) echo "Python 3.10.12" ;;
  "-m uv") shift 2; echo "uv $*" >> "$ASKED"; [ "$1" != python ] || exit {no_download} ;;
esac
"""


@pytest.mark.skipif(os.name == "nt", reason="Gradescope's scripts are for bash")
@pytest.mark.parametrize(
    ("too_old", "no_download", "asked", "output", "status"),
    [
        (0, 0, "uv venv --python {bin}/python3 {to}/course", "", 0),
        (1, 0, "uv python install 3.12", "This image has Python 3.10.12, and the course needs", 0),
        (1, 1, "uv python install 3.12", "Choose an image with Python 3.11 or later", 1),
    ],
    ids=["suitable Python", "old Python", "old Python without a download"],
)
def test_setup_uses_a_suitable_python(
    tmp_path: Path,
    small_course: Course,
    too_old: int,
    no_download: int,
    asked: str,
    output: str,
    status: int,
) -> None:
    bin, to = tmp_path / "bin", tmp_path / "opt"
    bin.mkdir()
    fake = FAKE_PYTHON.format(bash=shutil.which("bash"), too_old=too_old, no_download=no_download)
    for name, text in {"python3": fake, "apt-get": f"#!{shutil.which('bash')}\n"}.items():
        (bin / name).write_text(text)
        (bin / name).chmod(0o755)
    with zipfile.ZipFile(build(small_course, tmp_path, "sandbox", Policy.TITLES)) as archive:
        archive.extract("setup.sh", tmp_path)
    log = tmp_path / "asked"
    done = subprocess.run(
        [str(shutil.which("bash")), str(tmp_path / "setup.sh")],
        env={"PATH": str(bin), "ASKED": str(log), "AUTOGRADER_PREFIX": str(to)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    lines = log.read_text().splitlines()
    assert done.returncode == status, done.stderr
    assert output in done.stdout
    assert lines[0] == asked.format(bin=bin, to=to)
    if status == 0:
        constraint = "--constraint /autograder/source/course/constraints.txt"
        assert lines[-1].endswith(f"{constraint} --editable /autograder/source/course")


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Gradescope's scripts are for bash")
@pytest.mark.parametrize("only", ["", "01"])
def test_run_autograder_grades_submissions(tmp_path: Path, small_course: Course, only: str) -> None:
    shutil.copytree(own_course().root / "grader", small_course.root / "grader")
    isolation = "sandbox" if sys.platform == "linux" else "process"
    problem = small_course.select([only])[0] if only else None
    archive = build(small_course, tmp_path, isolation, Policy.TITLES, problem)
    root = tmp_path / "auto grader"
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(root / "source")
    write_submission(root, "01-doubling")
    environment = {"AUTOGRADER_ROOT": str(root), "AUTOGRADER_PYTHON": sys.executable}
    subprocess.run(
        ["bash", str(root / "source/run_autograder")],
        env={**os.environ, **environment},
        check=True,
        timeout=300,
    )
    data = json.loads((root / "results/results.json").read_text())
    assert data["score"] == sum(test["score"] for test in data["tests"]) == 4
    assert sum(test["max_score"] for test in data["tests"]) == (4 if only else 8)
