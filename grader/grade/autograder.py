"""Grade on Gradescope: build the archive to upload, and grade the submissions there.

Gradescope's container runs `python -m grader.grade.autograder FOLDER`, where FOLDER is
`/autograder`. This command grades `FOLDER/submission` and writes `FOLDER/results/results.json`. If
the grader itself fails, the command writes no results file. Gradescope then shows a failure instead
of a score of 0.
"""

from __future__ import annotations

import io
import sys
import tomllib
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

from grader.course import MANIFEST, SUBMISSION_FILE, Course, Problem, own_course
from grader.errors import CourseError, InternalError, SubmissionError
from grader.files import write_whole
from grader.grade.packing import FOR_AN_AUTOGRADER, files_of
from grader.grade.pool import grade_all
from grader.grade.settings import Settings
from grader.intake.submissions import find_submissions
from grader.reports.gradescope_json import refused_json, results_json
from grader.result import Isolation, Policy, Status, SubmissionResult
from grader.text import plain

_COURSE = (
    "LICENSE",
    "README.md",
    MANIFEST,
    "pyproject.toml",
    "problems/*.py",
    "problems/shared/**/*.py",
)
"""Patterns of the files that every archive contains."""

_PROBLEM = ("problems/{id}/*", "solutions/{id}/problem.py", "solutions/{id}/salt.txt")
"""Patterns of the files that the archive contains for each problem that it grades."""

_NOT_HERE = b"# The tests of this problem are not in this autograder.\n"
"""The content that replaces the test file of each problem that is not graded.

The file stays in the archive, because a course must contain a test file for each problem.
"""

_CONSTRAINTS = "constraints.txt"

_SETUP = """\
#!/usr/bin/env bash
# Gradescope runs this once, with network, when the autograder is built.
set -euo pipefail
course="${AUTOGRADER_ROOT:-/autograder}/source/course"
to="${AUTOGRADER_PREFIX:-/opt}"  # readable for all users: student code runs as another user
apt-get update && apt-get install -y python3 python3-pip python3-venv
python3 -m pip install --quiet uv || python3 -m pip install --quiet --break-system-packages uv

python=
for each in python3 python3.14 python3.13 python3.12 python3.11; do
    if "$each" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        python="$(command -v "$each")"
        break
    fi
done
if [ -z "$python" ]; then
    echo "This image has $(python3 --version), and the course needs 3.11 or later: installing 3.12."
    export UV_PYTHON_INSTALL_DIR="$to/python"
    python3 -m uv python install 3.12 || {
        echo "No suitable Python is available. Choose an image with Python 3.11 or later, such as"
        echo "Ubuntu 24.04, in the assignment's settings, and build the autograder again."
        exit 1
    }
    python=3.12
fi
python3 -m uv venv --python "$python" "$to/course"
python3 -m uv pip install --python "$to/course/bin/python" --torch-backend cpu \\
    --constraint "$course/constraints.txt" --editable "$course"
"""

_RUN = """\
#!/usr/bin/env bash
# Gradescope runs this for each submission.
root="${{AUTOGRADER_ROOT:-/autograder}}"
cd "$root/source/course"
exec "${{AUTOGRADER_PYTHON:-/opt/course/bin/python}}" -m grader.grade.autograder "$root" \\
    --isolation {isolation} --feedback {policy}{only}
"""


def build(
    course: Course,
    folder: Path,
    isolation: Isolation,
    policy: Policy,
    problem: Problem | None = None,
    part: str | None = None,
) -> Path:
    """Write an autograder's archive to a folder, and return the path of the archive.

    Args:
        course: the course with the tests.
        folder: the folder for the archive. It is created if it does not exist.
        isolation: the isolation of student code at Gradescope.
        policy: how much of the hidden tests the feedback shows.
        problem: the only problem of the assignment; None for all problems.
        part: the only part to grade. If it is None, all parts are graded, but only the required
            problems count for the score.

    Raises:
        CourseError: the hidden tests, the solutions or `uv.lock` are missing.
    """
    graded = [problem] if problem else course.of_part(part)
    for each in graded:
        if not course.solution(each).is_file() or each.first_hidden_line() is None:
            raise CourseError(
                f"{each.id} has no solution or no hidden tests here: "
                "build the autograder from the instructor's copy of the course"
            )
    only = f" --problem {problem.id}" if problem else f" --part {part}" if part else ""
    run = _RUN.format(isolation=isolation, policy=policy, only=only)
    files = {"setup.sh": _SETUP.encode(), "run_autograder": run.encode()}
    files |= {f"course/{name}": data for name, data in _course_files(course, graded).items()}
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            _add(archive, name, data)
    name = f"-{problem.id}" if problem else f"-part-{part}" if part else ""
    path = folder / f"autograder{name}.zip"
    write_whole(path, written.getvalue())
    return path


def _course_files(course: Course, graded: Sequence[Problem]) -> dict[str, bytes]:
    """Map names in the archive to the contents of the course's files."""
    patterns = [*_COURSE, *(each.format(id=p.id) for p in graded for each in _PROBLEM)]
    paths = {path for pattern in patterns for path in course.root.glob(pattern) if path.is_file()}
    paths |= {*files_of(course.root / "grader", FOR_AN_AUTOGRADER)}
    files = {path.relative_to(course.root).as_posix(): path.read_bytes() for path in sorted(paths)}
    others = [each.test_file for each in course.problems() if each not in graded]
    files |= {path.relative_to(course.root).as_posix(): _NOT_HERE for path in others}
    return files | {_CONSTRAINTS: _constraints(course).encode()}


def _constraints(course: Course) -> str:
    """Return the package versions in `uv.lock` as constraints for pip.

    The CPU build of torch also satisfies the constraints, although the lock file does not list it.

    Raises:
        CourseError: `uv.lock` is missing or can't be read.
    """
    try:
        lock = tomllib.loads((course.root / "uv.lock").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CourseError(f"can't read package versions from uv.lock: {error}") from None
    lines = []
    for package in lock.get("package", []):
        if "registry" in package["source"]:
            when = " or ".join(f"({each})" for each in package.get("resolution-markers", []))
            line = f"{package['name']}=={package['version']}"
            lines.append(f"{line} ; {when}\n" if when else f"{line}\n")
    return "".join(lines)


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    # The date is fixed, so that archives of the same course are identical.
    info = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
    info.external_attr = (0o755 if "/" not in name else 0o644) << 16
    info.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(info, data)


def grade_uploaded(
    root: Path,
    course: Course,
    settings: Settings,
    policy: Policy,
    grade: Callable[..., None] = grade_all,
    problem: Problem | None = None,
    part: str | None = None,
) -> None:
    """Grade `root/submission` and write `root/results/results.json`.

    Args:
        root: Gradescope's folder.
        course: the course with the tests.
        settings: seed, limits and level of isolation.
        policy: how much of the hidden tests the feedback shows.
        grade: the function that grades submissions, called like `grader.grade.pool.grade_all`.
        problem: the only problem of the assignment; None for all problems.
        part: the only part to grade; None for all parts.

    Raises:
        InternalError: the grader itself failed.
        OSError: the result can't be written.
    """
    path = root / "results" / "results.json"
    path.unlink(missing_ok=True)
    graded = [problem] if problem else course.of_part(part)
    ids = {each.id for each in graded}
    try:
        submissions_found = find_submissions(root / "submission", course, problem)
    except SubmissionError:
        submissions_found = []
    submissions = [each.only([id for id in each.files if id in ids]) for each in submissions_found]
    if not any(each.files for each in submissions):
        wanted = SUBMISSION_FILE if problem else _wanted(graded)
        write_whole(
            path, refused_json(f"The submission contains no file to grade. Submit {wanted}.")
        )
        return
    if len(submissions) != 1:
        names = ", ".join(submission.name for submission in submissions[:5])
        write_whole(
            path,
            refused_json(f"The upload contains several submissions ({names}). Submit only one."),
        )
        return
    results: list[SubmissionResult] = []
    grade(submissions, course.only_with(graded), settings, 1, results.append)
    if results[0].status == Status.INTERNAL:
        raise InternalError(next(iter(results[0].notes), "a test could not be judged"))
    # If the assignment has only one problem, report its result even for an unchanged stub.
    shown = results[0] if problem else results[0].without_skipped()
    write_whole(path, results_json(shown, policy))


def _wanted(graded: Sequence[Problem]) -> str:
    """Return the names of the files to submit, separated by commas.

    Files of optional problems are named only if all problems are optional.
    """
    counted = [each for each in graded if not each.part.optional]
    return ", ".join(f"{each.id}/{SUBMISSION_FILE}" for each in counted or graded)


def main(arguments: list[str]) -> int:
    """Grade the uploaded submission, and return the exit status."""
    options = dict(zip(arguments[1::2], arguments[2::2], strict=False))
    settings = Settings(isolation=Isolation(options.get("--isolation", Isolation.SANDBOX)))
    policy = Policy(options.get("--feedback", Policy.TITLES))
    course = own_course()
    try:
        problem = course.select([options["--problem"]])[0] if "--problem" in options else None
        part = options.get("--part")
        grade_uploaded(Path(arguments[0]), course, settings, policy, problem=problem, part=part)
    except (InternalError, CourseError, OSError) as error:
        print(plain(f"The grader failed; no mark was given: {error}"), file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
