"""Save the mistakes that a student has seen, and the problems that pass, in the student's copy.

The first time that a mistake occurs, the student reads an observation and a question. In later runs
the mistake is also named.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grader.code.course_modules import modules_used
from grader.course import Manifest, Problem
from grader.errors import CourseError
from grader.files import sha256_of, write_whole
from grader.result import ALTERNATIVE, ProblemResult

SEEN_FILE = ".seen.json"
"""The name of the file in the course's folder. Git ignores this file."""

MistakeNames = tuple[str, ...]
"""The names of one diagnosis: one mistake, or several that cannot be distinguished."""


@dataclass(frozen=True)
class Reading:
    """The sentences that a student reads about the mistakes in one problem.

    Attributes:
        sentences: the sentence that names the mistake, and the sentences that come from a test.
        nudge: the question that replaces the name of a mistake, or "".
        withheld: whether the name of a mistake is not shown yet.
        seen: the mistakes that count as seen after the student has read the sentences.
        more: a text with the command that shows a withheld name, or "".
    """

    sentences: tuple[str, ...] = ()
    nudge: str = ""
    withheld: bool = False
    seen: tuple[MistakeNames, ...] = ()
    more: str = ""


def named(result: ProblemResult) -> Reading:
    """Return the sentences about the first failed test, including the name of its mistake."""
    explained = _shown_diagnoses(result)
    return Reading(
        tuple(text for text, _ in explained), seen=tuple(names for _, names in explained if names)
    )


def reading(result: ProblemResult, before: Collection[MistakeNames]) -> Reading:
    """Return the sentences about the first failed test.

    They name the test's mistake only if the student has already seen this mistake.

    Args:
        result: the result of the problem.
        before: the diagnoses that the student has already seen. A new diagnosis counts as seen if
            one of them contains all of its names.
    """
    for sentence, mistake in _shown_diagnoses(result):
        if mistake and not any({*mistake} <= {*known} for known in before):
            others = tuple(text for text, names in _shown_diagnoses(result) if not names)
            more = f"To see the mistake's name: uv run grader hint {result.id[:2]} --name"
            return Reading(others, _nudge(sentence), True, (mistake,), more)
    return named(result)


def _shown_diagnoses(result: ProblemResult) -> list[tuple[str, MistakeNames]]:
    """Return the diagnoses to show, as (sentence, names of mistakes) pairs.

    They are all sentences from tests, and one sentence about the mistake that explains the first
    failed test. No second mistake is shown, so that the student reads only one question.
    """
    first = next((test for test in result.tests if test.is_wrong and test.is_judged), None)
    names = set(first.diagnosis) if first else set()
    diagnoses = _diagnoses(result)
    explained = [(text, mistakes) for text, mistakes in diagnoses if names & {*mistakes}]
    return [*((text, mistakes) for text, mistakes in diagnoses if not mistakes), *explained[:1]]


def _diagnoses(result: ProblemResult) -> list[tuple[str, MistakeNames]]:
    """Return (sentence, names of mistakes) pairs. A sentence from a test has no names."""
    padded = [*result.mistakes, *([] for _ in result.diagnoses[len(result.mistakes) :])]
    return [(text, tuple(names)) for text, names in zip(result.diagnoses, padded, strict=True)]


def _nudge(sentence: str) -> str:
    """Return the question of a sentence such as "It looks as if ... . Which ...?".

    The first part, which names the mistake, is omitted.
    """
    looks = [each.partition(". ")[2] for each in sentence.split(ALTERNATIVE)]
    return "\n".join(dict.fromkeys(look for look in looks if look))


class SeenMistakes:
    """The file with the mistakes that a student has seen, and the problems that pass.

    If the file is damaged, it counts as empty. If it cannot be written, nothing is saved.

    Args:
        root: the course's folder.
    """

    def __init__(self, root: Path) -> None:
        self._root, self._path = root, root / SEEN_FILE

    def reading(self, result: ProblemResult) -> Reading:
        """Return the sentences about the first failed test, without the names of new mistakes."""
        if self._at_once():
            return named(result)
        return reading(result, {tuple(names) for names in self._load("seen").get(result.id, [])})

    def passes(self, problem: Problem) -> bool:
        """Return whether a problem passed its last test run and has not changed since then."""
        return self._load("passed").get(problem.id) == _state(problem)

    def mark_seen(self, problem: str, mistakes: Collection[MistakeNames]) -> None:
        """Save mistakes that the student has seen in a problem."""
        seen = self._load("seen")
        known = seen.get(problem, [])
        new = [list(names) for names in mistakes if list(names) not in known]
        if new:
            self._write({"seen": {**seen, problem: [*known, *new]}})

    def save_passed(self, problem: Problem, result: ProblemResult) -> None:
        """Save whether the current `problem.py` passes all tests that were run."""
        passed = self._load("passed")
        now = {id: state for id, state in passed.items() if id != problem.id}
        if result.passed:
            now[problem.id] = _state(problem)
        if now != passed:
            self._write({"passed": now})

    def _write(self, tables: dict[str, Any]) -> None:
        kept = {table: self._load(table) for table in ("seen", "passed")}
        with suppress(OSError):
            write_whole(self._path, json.dumps({**kept, **tables}, indent=1))

    def _at_once(self) -> bool:
        try:
            return Manifest.load(self._root).names_at_once
        except CourseError:
            return False

    def _load(self, table: str) -> dict[str, Any]:
        try:
            data = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        content = data.get(table) if isinstance(data, dict) else None
        if not isinstance(content, dict):
            return {}
        return content if table == "passed" or all(map(_is_seen, content.values())) else {}


def _is_seen(value: object) -> bool:
    """Return whether a value from the file is a list of lists of mistakes' names."""
    mistakes = value if isinstance(value, list) else [None]
    names = [name for each in mistakes for name in (each if isinstance(each, list) else [None])]
    return all(isinstance(name, str) for name in names)


def _state(problem: Problem) -> str:
    """Return a hash of the student's file and its tests, or "" if a file is missing."""
    try:
        shared = modules_used([problem.test_file.read_bytes()], problem.folder.parent)
        return sha256_of({p.name: p for p in (problem.stub, problem.test_file, *shared)})
    except OSError:
        return ""
