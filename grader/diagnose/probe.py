"""Call a student's code as a problem's `probe.py` requests, and return the answers.

A question is a call with fixed arguments. An answer describes the return value or the exception.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from grader.code.course_modules import modules_of_course
from grader.code.forbidden import Guard
from grader.code.loading import load_module, no_caller_is_student
from grader.code.time_limit import DoesNotEnd, time_limit
from grader.course import Entry, Problem
from grader.diagnose.answers import Answer, attempt

PROBE_SECONDS = 10.0
"""The time limit in seconds for all questions of a problem. They need less than 0.5 seconds."""

_SEED = 8191

Question = Callable[[], object]


@dataclass(frozen=True)
class Part:
    """The questions about one function or class.

    Attributes:
        main: questions with inputs of ordinary size. The numbers in the answers distinguish
            mistakes. A few questions should use one size for all dimensions, so that nearly every
            version of a mistake returns numbers instead of an exception.
        edges: questions about large scores, other dtypes, gradients, changed arguments, the random
            state or a second call. They find mistakes that the main questions do not find. If an
            answer is an exception, NaN or infinity, only the kind of failure is compared.
    """

    main: Mapping[str, Question]
    edges: Mapping[str, Question] = field(default_factory=dict)


@dataclass(frozen=True)
class Answers:
    """The answers of one part, by question."""

    main: Mapping[str, Answer]
    edges: Mapping[str, Answer]


Probe = Callable[[Any], Mapping[str, Part]]


def owner(part: str) -> str:
    """Return the name of the function or class that a part belongs to.

    A class may have several parts, so that a mistake in one part does not hide a mistake in another
    part. For example, `"Model: dropout"` is a part of `Model`.
    """
    return part.partition(":")[0]


def load_probe(problem: Problem) -> Probe | None:
    """Return the probe of a problem; None if the problem has no `probe.py`."""
    if not problem.probe_file.is_file():
        return None
    with modules_of_course(problem.folder.parents[1]):
        probe: Probe = load_module(problem.probe_file, f"probe_{problem.id[:2]}").probe
    return probe


def ask(probe: Probe, code: Any) -> dict[str, Answers]:
    """Return the answers of a student's code, by part, without a guard against forbidden functions.

    The result is empty if the probe fails or the time limit is reached.

    Args:
        probe: the questions.
        code: the student's module.
    """
    try:
        with time_limit(PROBE_SECONDS):
            return answers_of(probe, code)
    except (Exception, DoesNotEnd):
        return {}


def answers_of(
    probe: Probe, code: Any, wanted: Callable[[str], bool] = lambda part: True
) -> dict[str, Answers]:
    """Return the answers of a student's code, by part, without a time limit.

    Args:
        probe: the questions.
        code: the student's module.
        wanted: a function that returns whether the result should include a part.

    Raises:
        Exception: the probe fails.
    """
    return {name: _ask_part(part) for name, part in probe(code).items() if wanted(name)}


def ask_with_guard(
    probe: Probe, entry: Entry, open_code: Callable[[tuple[str, ...]], Any], *, watch: bool
) -> dict[str, Answers]:
    """Return the answers of a student's code, by part, with a guard against forbidden functions.

    The result is empty if the probe fails or the time limit is reached.

    Args:
        probe: the questions.
        entry: the problem's list of forbidden functions.
        open_code: loads the student's module. Its argument is a tuple of forbidden functions. It
            raises CannotLoad if the student's file can't be used.
        watch: whether a call of a forbidden function raises an exception. If so, the exception is
            the answer to the question.
    """
    codes = {forbidden: open_code(forbidden) for forbidden in entry.all_forbidden()}
    answers = {}
    try:
        with time_limit(PROBE_SECONDS):
            parts = {forbidden: probe(code) for forbidden, code in codes.items()}
            for name in parts[entry.forbidden]:
                forbidden = entry.forbidden_where({owner(name)})
                with Guard(forbidden if watch else (), no_caller_is_student):
                    answers[name] = _ask_part(parts[forbidden][name])
    except (Exception, DoesNotEnd):
        return {}
    return answers


def _ask_part(part: Part) -> Answers:
    main = {name: _attempt(question) for name, question in part.main.items()}
    return Answers(main, {name: _attempt(question) for name, question in part.edges.items()})


def _attempt(question: Question) -> Answer:
    """Return the answer to a question, after resetting the random state and the default dtype."""
    torch.default_generator.manual_seed(_SEED)
    torch.set_default_dtype(torch.float32)
    return attempt(question)
