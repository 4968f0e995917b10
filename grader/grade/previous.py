"""Read the results of previous runs, and decide which of them are still valid.

A result lists the inputs of its marks (`provenance`): the student's file, the tests, the grader,
the seed and so on. As long as these inputs are unchanged, the marks are kept. Files that a killed
run left incomplete are ignored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NoReturn

from grader.course import Course
from grader.errors import UsageError
from grader.files import set_aside, write_whole
from grader.grade.provenance import provenance
from grader.gradebook.late_policy import parse_time
from grader.intake.handed_in import StudentFile, Submission
from grader.intake.identity import is_folder_name, longer_result_name
from grader.result import SCHEMA_VERSION, ProblemResult, Provenance, Status, SubmissionResult
from grader.text import quoted, some

RESULTS = "results"

NEW = "new"
"""The reason to grade a problem without a result."""

_FAULT = "the grader had failed"
_FRESH = "graded afresh"
_DAMAGED = "the previous result was damaged"
_FIRST_BYTES = 100
_SHOWN = 5
_VERSION = re.compile(rb'\s*{\s*"schema":\s*(\d+)')


def sweep(folder: Path) -> None:
    """Remove incomplete files that a killed run left in a folder."""
    for pattern in (".*.part", "*/.*.part"):
        for path in folder.glob(pattern):
            path.unlink(missing_ok=True)


# Reading and writing


def result_path(folder: Path, name: str) -> Path:
    """Return the path of a submission's result in a folder of results."""
    return folder / f"{name}.json"


def save_result(result: SubmissionResult, folder: Path) -> Path:
    """Write a result into a folder atomically, and return its path."""
    path = result_path(folder, result.submission)
    write_whole(path, json.dumps(result.to_json(), indent=2, ensure_ascii=True) + "\n")
    return path


def read_result(path: Path) -> SubmissionResult:
    """Return the result in a file.

    Raises:
        ValueError: the file is damaged or can't be read. The message contains the reason.
    """
    if not path.is_file():
        raise ValueError("it is not a file")
    try:
        text = path.read_text(encoding="utf-8")
        result = SubmissionResult.from_json(json.loads(text, parse_constant=_refuse))
    except OSError as error:
        raise ValueError(f"it can't be read: {error.strerror}") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if result.submission != path.stem:
        raise ValueError("it is the result of another submission")
    return result


def _refuse(number: str) -> NoReturn:
    raise ValueError(f"{number} is not a number in JSON")


@dataclass(frozen=True)
class Previous:
    """The results of previous runs.

    Attributes:
        results: maps the name of a submission to its result, if the result can be read. No two
            results have the same identity.
        damaged: maps the name of a submission to the reason why its result can't be read.
    """

    results: dict[str, SubmissionResult] = field(default_factory=dict)
    damaged: dict[str, str] = field(default_factory=dict)

    def of(self, submission: Submission) -> SubmissionResult | None:
        """Return the result with the name and the identity of `submission`, or None."""
        result = self.results.get(submission.name)
        return result if result and result.who == submission.identity else None

    def why_none(self, name: str) -> str:
        """Return the reason to grade a submission that has no readable previous result."""
        return _DAMAGED if name in self.damaged else NEW


def require_this_version(folder: Path) -> None:
    """Check that all results in a folder have the current version of the format.

    Raises:
        UsageError: a result has another version.
    """
    for path in _results_in(folder):
        with suppress(OSError), path.open("rb") as file:
            version = _VERSION.match(file.read(_FIRST_BYTES))
            if version and int(version[1]) != SCHEMA_VERSION:
                raise UsageError(
                    f"{folder.parent} contains results in version {int(version[1])} of the format, "
                    f"but this grader reads only version {SCHEMA_VERSION}. Grade the submissions "
                    f"again into another folder with --out."
                )


def _results_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("[!.]*.json"))


def load_previous(folder: Path) -> Previous:
    """Read all results in a folder.

    Raises:
        UsageError: a result has another version of the format.
    """
    require_this_version(folder)
    previous = Previous()
    known: dict[str, str] = {}
    for path in _results_in(folder):
        try:
            result = read_result(path)
            if known.setdefault(result.who, path.stem) != path.stem:
                raise ValueError(f"it belongs to the same student as {known[result.who]}.json")
            previous.results[path.stem] = result
        except ValueError as error:
            previous.damaged[path.stem] = str(error)
    return previous


def keep_aside(previous: Previous, names: Collection[str], folder: Path) -> None:
    """Rename damaged files that new results would overwrite.

    Args:
        previous: the results of previous runs.
        names: the names of the submissions.
        folder: the folder of results.
    """
    for name in {*previous.damaged} & {*names}:
        set_aside(result_path(folder, name), "damaged")


def require_same_course(previous: Previous, course: Course, folder: Path) -> None:
    """Check that a folder of reports contains only results of problems in this course.

    Raises:
        UsageError: the folder contains results of other problems.
    """
    results = previous.results.values()
    ids = {problem.id for each in results for problem in each.problems if problem.id}
    if others := sorted(ids - {problem.id for problem in course.problems()}):
        raise UsageError(
            f"{folder} contains results of problems that this course does not have "
            f"({', '.join(others[:3])}). They would be lost. Choose another folder with --out, or "
            f"the right course with --course."
        )


def named_as_before(
    submissions: Iterable[Submission], previous: Previous
) -> tuple[list[Submission], list[str]]:
    """Give each submission the name of its previous result. Return the submissions and remarks.

    If the name of a new student already belongs to another student, the new student gets a longer
    name, and a remark reports this. Therefore no result of another student is overwritten.
    """
    names = {result.who: name for name, result in previous.results.items()}
    taken = {name.lower() for name in names.values()}
    named, remarks = [], []
    for each in submissions:
        name = names.get(each.identity, each.name)
        if each.identity not in names and name.lower() in taken:
            name = longer_result_name(each.identity, each.full_name)
            remarks.append(
                f"The files of {quoted(each.identity)} are called {name}, because {each.name} is "
                "already used."
            )
        named.append(replace(each, name=name))
    return named, remarks


# Plans


@dataclass
class Plan:
    """The plan for one submission.

    Attributes:
        submission: the submission. An unchanged file keeps the time of its first submission.
        kept: maps problem ids to the previous results to keep. They are still valid, or their
            problem is not part of the submission.
        reasons: maps the id of each problem to grade to the reason for grading it.
    """

    submission: Submission
    kept: dict[str, ProblemResult] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)

    def with_ungraded(self, ungraded: Mapping[str, ProblemResult]) -> list[ProblemResult]:
        """Return the kept results, and a placeholder from `ungraded` for each problem to grade."""
        files = self.submission.files
        new = [replace(ungraded[id], sha256=files[id].sha256) for id in self.reasons]
        return [*self.kept.values(), *new]


def plan(
    submission: Submission,
    previous: Previous,
    common: dict[str, Provenance],
    *,
    fresh: bool,
) -> Plan:
    """Return the plan for a submission: the results to keep, and the problems to grade.

    The results of problems that are not part of the submission are kept.

    Args:
        submission: the submission.
        previous: the results of previous runs.
        common: maps the id of each problem to the current provenance that all students share.
        fresh: whether to grade everything again.
    """
    result = previous.of(submission)
    known = {problem.id: problem for problem in result.problems} if result else {}
    submission = _as_first_seen(submission, known)
    planned = Plan(submission)
    for id, rest in common.items():
        old = known.get(id)
        if id not in submission.files:
            planned.kept |= {id: old} if old is not None else {}
        elif result is not None and result.status == Status.INTERNAL:
            planned.reasons[id] = _FAULT
        elif old is None or not old.tests:
            planned.reasons[id] = previous.why_none(submission.name)
        elif changed := _changed(old, provenance(submission.files[id], rest)):
            planned.reasons[id] = ", ".join(f"{name} changed" for name in changed)
        elif fresh:
            planned.reasons[id] = _FRESH
        else:
            planned.kept[id] = old
    return planned


def about_replaced(plans: Iterable[Plan], previous: Previous) -> list[str]:
    """Return a warning if the files in several folders have changed since the previous run.

    Perhaps these folders belong to students of another section, and only their names are the same.
    """
    replaced = [
        quoted(each.submission.shown_name)
        for each in plans
        if is_folder_name(each.submission.identity) and _is_replaced(each.submission, previous)
    ]
    if len(replaced) < 2:
        return []
    return [
        f"{len(replaced)} submissions differ from earlier submissions with the same names: "
        f"{some(replaced, _SHOWN)}. If they are from other students, such as students of another "
        f"section, the earlier marks are lost. Use a separate --out for each section, or give the "
        f"folders different names."
    ]


def _is_replaced(submission: Submission, previous: Previous) -> bool:
    """Return whether a file of the submission differs from the file that was graded before."""
    result = previous.of(submission)
    before = {each.id: each.sha256 for each in result.problems} if result else {}
    return any(
        file.sha256 and before.get(id) and file.sha256 != before[id]
        for id, file in submission.files.items()
    )


def _as_first_seen(submission: Submission, known: Mapping[str, ProblemResult]) -> Submission:
    """Return the submission, in which each unchanged file has the time of its first submission.

    Some platforms report the time of the last push for all files of a repository.
    """
    files = {
        id: _first_time(file, known[id]) if id in known and known[id].sha256 else file
        for id, file in submission.files.items()
    }
    return replace(submission, files=files)


def _first_time(file: StudentFile, old: ProblemResult) -> StudentFile:
    if file.sha256 != old.sha256:
        return file
    times = {time: at for time in (old.handed_in, file.handed_in) if (at := parse_time(time))}
    first = min(times, key=times.__getitem__, default="")
    return replace(file, handed_in=first, late=file.late and old.late)


def _changed(old: ProblemResult, now: Provenance) -> list[str]:
    """Return the names of the provenance entries that differ between an old result and `now`."""
    before = dict(old.provenance)
    return [name for name, value in now.items() if before.get(name, "") != value]


def outdated(
    results: Iterable[SubmissionResult], common: dict[str, Provenance]
) -> dict[str, list[str]]:
    """Return the names of the changed provenance entries, for each problem with outdated marks.

    Args:
        results: the results of the whole class.
        common: maps the id of each problem to the current provenance that all students share.
    """
    changed: dict[str, set[str]] = {id: set() for id in common}
    for problem in (p for result in results for p in result.problems if p.id in common):
        changed[problem.id].update(_changed(problem, common[problem.id]))
    return {id: sorted(names) for id, names in changed.items() if names}
