"""Grading on Gradescope: builds the archive that is uploaded there, and grades what arrives there.

Run as `python -m grader.grading.gradescope FOLDER` inside Gradescope's container, where FOLDER is
`/autograder`: it grades `FOLDER/submission` and writes `FOLDER/results/results.json`. When the
grader itself fails there is no such file, so that Gradescope shows a failure and never a zero.
"""

from __future__ import annotations

import io
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

from grader.course import Course, own_course
from grader.errors import CourseError, InternalError, SubmissionError
from grader.files import write_whole
from grader.grading.pool import grade_all
from grader.grading.settings import Settings
from grader.intake.submissions import find_submissions
from grader.parts import FOR_AN_AUTOGRADER, files_of
from grader.reports.gradescope import refused_json, results_json
from grader.result import Isolation, Policy, Status, SubmissionResult
from grader.text import plain

ARCHIVE = "autograder.zip"

_COURSE = (
    "LICENSE",
    "README.md",
    "pyproject.toml",
    "problems/*",
    "problems/*/*",
    "solutions/*/problem.py",
)
"""What of the course goes along, beside the grader: what grading needs, and what its package is
built from."""

_SETUP = """\
#!/usr/bin/env bash
# Gradescope runs this once, with network, when the autograder is built.
set -euo pipefail
apt-get update && apt-get install -y python3-pip
python3 -m pip install --quiet uv || python3 -m pip install --quiet --break-system-packages uv
# Where every user may read: student code runs as a user of its own.
export UV_PYTHON_INSTALL_DIR=/opt/python
python3 -m uv venv --python 3.12 /opt/course
python3 -m uv pip install --python /opt/course/bin/python --torch-backend cpu \\
    --editable "${AUTOGRADER_ROOT:-/autograder}/source/course"
"""

_RUN = """\
#!/usr/bin/env bash
# Gradescope runs this for each submission.
root="${{AUTOGRADER_ROOT:-/autograder}}"
cd "$root/source/course"
exec "${{AUTOGRADER_PYTHON:-/opt/course/bin/python}}" -m grader.grading.gradescope "$root" \\
    --isolation {isolation} --feedback {policy}
"""


def build(course: Course, folder: Path, isolation: Isolation, policy: Policy) -> Path:
    """Write `autograder.zip` into a folder and return its path.

    Args:
        course: what to grade with.
        folder: where to write; it is made if need be.
        isolation: how student code is kept apart there.
        policy: what students read of hidden tests.

    Raises:
        CourseError: the hidden tests or the solutions are not at hand.
    """
    for problem in course.problems():
        if not course.solution(problem).is_file() or problem.first_hidden_line() is None:
            raise CourseError(
                f"{problem.id} has no solution or no hidden tests here: "
                "build the autograder from the instructor's copy of the course"
            )
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        _add(archive, "setup.sh", _SETUP.encode())
        _add(archive, "run_autograder", _RUN.format(isolation=isolation, policy=policy).encode())
        for path in _files(course):
            name = path.relative_to(course.root).as_posix()
            _add(archive, f"course/{name}", path.read_bytes())
    write_whole(folder / ARCHIVE, written.getvalue())
    return folder / ARCHIVE


def _files(course: Course) -> Iterator[Path]:
    found = {path for pattern in _COURSE for path in course.root.glob(pattern) if path.is_file()}
    return iter(sorted({*found, *files_of(course.root / "grader", FOR_AN_AUTOGRADER)}))


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    # With a fixed date, so that the same course gives the same archive.
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
) -> None:
    """Grade `root/submission` and write `root/results/results.json`.

    Args:
        root: Gradescope's folder.
        course: what to grade with.
        settings: seed, limits and level of isolation.
        policy: what students read of hidden tests.
        grade: grades submissions, as `grader.grading.pool.grade_all` does.

    Raises:
        InternalError: the grader itself failed.
        OSError: the result can't be written.
    """
    path = root / "results" / "results.json"
    path.unlink(missing_ok=True)
    try:
        submissions = find_submissions([root / "submission"], course)
    except SubmissionError:
        wanted = ", ".join(f"{problem.id}/problem.py" for problem in course.problems())
        write_whole(path, refused_json(f"There is nothing to grade. Hand in {wanted}."))
        return
    if len(submissions) != 1:
        names = ", ".join(submission.name for submission in submissions[:5])
        write_whole(path, refused_json(f"This holds several submissions ({names}); hand in one."))
        return
    results: list[SubmissionResult] = []
    grade(submissions, course, settings, 1, results.append)
    if results[0].status == Status.INTERNAL:
        raise InternalError(next(iter(results[0].notes), "a test could not be judged"))
    write_whole(path, results_json(results[0], policy))


def main(arguments: list[str]) -> int:
    """Grade what was uploaded; return the exit status."""
    options = dict(zip(arguments[1::2], arguments[2::2], strict=False))
    settings = Settings(isolation=Isolation(options.get("--isolation", Isolation.SANDBOX)))
    policy = Policy(options.get("--feedback", Policy.TITLES))
    try:
        grade_uploaded(Path(arguments[0]), own_course(), settings, policy)
    except (InternalError, CourseError, OSError) as error:
        print(plain(f"The grader failed, no mark was given: {error}"), file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
