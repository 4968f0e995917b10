"""`grader adopt`: a group of wrong answers that has no name yet gets one, and a sentence to tell.

The answers alone are enough to name the mistake in the feedback of all who give them. They are kept
in `solutions/NN-name/adopted.json`. A file of a student's makes it a mistake of the catalogue, with
which tests are judged and which the audit runs: what it does to the right file that is most like it
goes into `mistakes.edits`.
"""

from __future__ import annotations

import ast
import json
import keyword
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from grader.author.making_edits import smallest_edit, written
from grader.course import Course, Problem
from grader.diagnose.edits import Edit, edits_file, parse
from grader.diagnose.fingerprints import Fault, Fingerprints, Text
from grader.diagnose.naming import kept_answers
from grader.diagnose.probe import Answers
from grader.diagnose.unknown_answers import Group, groups
from grader.errors import UsageError
from grader.files import write_whole
from grader.grade.previous import RESULTS, load_previous
from grader.reports.sources import SOURCES, Sources
from grader.result import SubmissionResult
from grader.text import counted, line


def adopted_file(course: Course, problem: Problem) -> Path:
    """Return where the adopted answers of a problem are kept."""
    return course.solution(problem).parent / "adopted.json"


def adopt_group(
    group: str, name: str, text: Text, reports: Path, course: Course, submission: str = ""
) -> list[str]:
    """Find a group in a folder of reports, adopt it, and return what to say of that.

    Args:
        group: its name.
        name: what the mistake is called in the catalogue.
        text: what to tell students.
        reports: the folder.
        course: whose catalogue.
        submission: whose file to take as well; empty to keep the answers alone.

    Raises:
        UsageError: there is no such group, submission or file, or the name can't be used.
    """
    results = load_previous(reports / RESULTS).results
    found = {each.name: each for each in groups(results.values())}
    if group not in found:
        known = ", ".join(found) or "none"
        raise UsageError(f"there is no group '{group}' in {reports}; there are: {known}")
    chosen = found[group]
    problem = course.select([chosen.problem])[0]
    source = _source_of(submission, chosen, results, reports) if submission else None
    written = adopt(chosen, name, _ended(text), course, problem, source)
    told = [f"{path.relative_to(course.root)} is written." for path in written]
    told.append(
        f"With the next run of grade, {counted(len(chosen.submissions), 'student')} will read: "
        f"It looks as if {_ended(text).when}."
    )
    if submission:
        told.append(
            f"Read {name} in {written[0].name} before you go on: the audit runs it outside of the "
            f"sandbox. Then run grader audit {problem.id[:2]} --write-fingerprints."
        )
    return told


def _ended(text: Text) -> Text:
    """Return a text as those of the catalogue are: the sentence's end is added where it is told.

    Raises:
        UsageError: it says nothing.
    """
    when = line(text.when).rstrip(". ")
    if not when:
        raise UsageError('Say what is wrong, as in --say "the scores are divided by √d_k twice".')
    return Text(when, line(text.look))


def _source_of(
    submission: str, group: Group, results: Mapping[str, SubmissionResult], reports: Path
) -> bytes:
    if submission not in group.submissions:
        names = ", ".join(group.submissions)
        raise UsageError(f"'{submission}' is not of that group; of it are: {names}")
    problems = {problem.id: problem for problem in results[submission].problems}
    source = Sources(reports / SOURCES).read(problems[group.problem].sha256)
    if source is None:
        raise UsageError(f"the file of '{submission}' is not in {reports} any more")
    return source


def adopt(
    group: Group,
    name: str,
    text: Text,
    course: Course,
    problem: Problem,
    source: bytes | None = None,
) -> list[Path]:
    """Put a group's answers into the catalogue, and into what reports name mistakes by.

    Args:
        group: whose answers.
        name: what the mistake is called in the catalogue.
        text: what to tell students.
        course: whose catalogue.
        problem: the group's.
        source: the file that makes the mistake; None to keep the answers alone.

    Returns:
        The files that were written.

    Raises:
        UsageError: the name can't be used, or the file is no Python, or a right one.
        CourseError: the mistakes that there are can't be read.
    """
    known = Fingerprints.load(problem.fingerprints)
    _require_new(name, known)
    fault = Fault(name, answers_of(group))
    if source is None:
        kept = adopted_file(course, problem)
        write_whole(kept, _with_one_more(kept, name, text, group))
    else:
        kept = edits_file(course, problem)
        write_whole(kept, _with_one_more_edit(course, problem, name, text, source))
    texts = {**known.texts, name: text}
    replace(known, faults=(*known.faults, fault), texts=texts).save(problem.fingerprints)
    return [kept, problem.fingerprints]


def adopted(course: Course, problem: Problem) -> tuple[list[Fault], dict[str, Text]]:
    """Return the faults of which the answers alone were adopted, and what to tell of them."""
    entries = _entries(adopted_file(course, problem))
    faults = [Fault(entry["name"], _read(entry["answers"])) for entry in entries]
    return faults, {entry["name"]: Text(entry["say"], entry["look"]) for entry in entries}


def answers_of(group: Group) -> dict[str, Answers]:
    """Return the wrong answers that a group has in common."""
    return _read(group.answers)


def _read(answers: object) -> dict[str, Answers]:
    assert isinstance(answers, dict)
    return {part: kept_answers(given) for part, given in answers.items()}


def _entries(path: Path) -> list[dict[str, Any]]:
    """Return what was adopted before."""
    found: list[dict[str, Any]] = []
    if path.is_file():
        found = json.loads(path.read_text(encoding="utf-8"))
    return found


def _with_one_more(path: Path, name: str, text: Text, group: Group) -> str:
    entries = _entries(path)
    answers = {part: dict(given) for part, given in group.answers.items()}
    entries.append({"name": name, "say": text.when, "look": text.look, "answers": answers})
    return json.dumps(entries, indent=1, ensure_ascii=False) + "\n"


def _require_new(name: str, known: Fingerprints) -> None:
    if not name.isidentifier() or keyword.iskeyword(name) or name != name.lower():
        raise UsageError(f"'{name}' can't name a mistake; use small letters and _, as scaled_twice")
    if name in known.texts:
        raise UsageError(f"there is a mistake '{name}' already: {known.texts[name].when}")


def _with_one_more_edit(
    course: Course, problem: Problem, name: str, text: Text, source: bytes
) -> str:
    """Return a problem's mistakes with one more, the file of a student's."""
    right = {n: p.read_text(encoding="utf-8") for n, p in course.right_files(problem).items()}
    edit = smallest_edit(Edit(name, "", text.when, text.look, ()), code_alone(source), right)
    if edit is None:
        raise UsageError("this file is a right one, or differs by less than whole lines from all")
    path = edits_file(course, problem)
    known = path.read_text(encoding="utf-8").rstrip("\n") + "\n\n" if path.is_file() else ""
    whole = known + written(edit)
    parse(whole, path.name)
    return whole


def code_alone(source: bytes) -> str:
    """Return a student's file as it may stand in the catalogue: without a word of the student's.

    Comments, docstrings and other texts that stand by themselves are left out, since they may hold
    names.

    Raises:
        UsageError: the file is no Python.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UsageError(f"this file can't be read as Python: {error}") from None
    _take_out_texts(tree)
    return ast.unparse(tree) + "\n"


def _take_out_texts(tree: ast.Module) -> None:
    """Take out every text that stands by itself, or under a name that nothing asks for."""
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    unasked = {n.id for n in names} - {n.id for n in names if isinstance(n.ctx, ast.Load)}
    for node in ast.walk(tree):
        for field in ("body", "orelse", "finalbody"):
            body = getattr(node, field, None)
            if isinstance(body, list) and body:
                kept = [each for each in body if not _is_idle_text(each, unasked)]
                setattr(node, field, kept or [ast.Pass()])


def _is_idle_text(statement: ast.AST, unasked: set[str]) -> bool:
    value = getattr(statement, "value", None)
    if not (isinstance(value, ast.Constant) and isinstance(value.value, str)):
        return False
    if isinstance(statement, ast.Assign):
        targets = statement.targets
        return all(isinstance(each, ast.Name) and each.id in unasked for each in targets)
    return isinstance(statement, ast.Expr)
