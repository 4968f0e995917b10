"""Asks a problem's questions: its `probe.py` says which, for each function and class by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from grader.code.course_modules import modules_of_course
from grader.code.forbidden import Guard
from grader.code.interrupt import DoesNotEnd, time_limit
from grader.code.loading import load_module, not_for_a_student
from grader.course import Entry, Problem
from grader.diagnose.answers import Answer, attempt

PROBE_SECONDS = 10.0
"""How long all questions of a problem may take together. They take less than half a second."""

_SEED = 8191

Question = Callable[[], object]


@dataclass(frozen=True)
class Part:
    """The questions about one function or class.

    Attributes:
        main: those whose numbers tell one mistake from another, on inputs of ordinary size. Some
            should have all sizes alike: then nearly every mistake gives numbers, however it is
            written, and none an exception.
        edges: those about what is extreme or beside the numbers: large scores, other dtypes,
            gradients, changed arguments, the random state, a second call. They tell mistakes that
            main questions don't show, and the manner in which they fail counts, not the numbers.
    """

    main: Mapping[str, Question]
    edges: Mapping[str, Question] = field(default_factory=dict)


@dataclass(frozen=True)
class Answers:
    """What a part answered, by question."""

    main: Mapping[str, Answer]
    edges: Mapping[str, Answer]


Probe = Callable[[Any], Mapping[str, Part]]


def owner(part: str) -> str:
    """Return which function or class a part is about.

    A class with several sides may have a part for each, so that a mistake on one side doesn't hide
    another: `"Model: dropout"` is a part of `Model`.
    """
    return part.partition(":")[0]


def load_probe(problem: Problem) -> Probe | None:
    """Return the questions of a problem; None when it has no `probe.py`."""
    if not problem.probe_file.is_file():
        return None
    with modules_of_course(problem.folder.parents[1]):
        probe: Probe = load_module(problem.probe_file, f"probe_{problem.id[:2]}").probe
    return probe


def ask(probe: Probe, code: Any) -> dict[str, Answers]:
    """Return the answers of a problem's code, part by part, where nothing is forbidden.

    There are none when the probe itself fails, or when the code takes too long over it.

    Args:
        probe: the questions.
        code: the student's module, or what stands for it.
    """
    try:
        with time_limit(PROBE_SECONDS):
            return answers_of(probe, code)
    except (Exception, DoesNotEnd):
        return {}


def answers_of(
    probe: Probe, code: Any, wanted: Callable[[str], bool] = lambda part: True
) -> dict[str, Answers]:
    """Return the answers of a problem's code to the wanted parts, without a time limit.

    Raises:
        Exception: the probe itself fails.
    """
    return {name: _asked(part) for name, part in probe(code).items() if wanted(name)}


def ask_where(
    probe: Probe, entry: Entry, open_code: Callable[[tuple[str, ...]], Any], *, watch: bool
) -> dict[str, Answers]:
    """Return the answers of a problem's code, each part's where some functions are forbidden.

    Args:
        probe: the questions.
        entry: which functions are forbidden.
        open_code: returns the code that may not call some functions; may raise CannotLoad.
        watch: whether to look out for forbidden calls here, which end an answer.
    """
    codes = {forbidden: open_code(forbidden) for forbidden in entry.all_forbidden()}
    found = {}
    try:
        with time_limit(PROBE_SECONDS):
            parts = {forbidden: probe(code) for forbidden, code in codes.items()}
            for name in parts[entry.forbidden]:
                forbidden = entry.forbidden_where({owner(name)})
                with Guard(forbidden if watch else (), not_for_a_student):
                    found[name] = _asked(parts[forbidden][name])
    except (Exception, DoesNotEnd):
        return {}
    return found


def _asked(part: Part) -> Answers:
    main = {name: _attempt(question) for name, question in part.main.items()}
    return Answers(main, {name: _attempt(question) for name, question in part.edges.items()})


def _attempt(question: Question) -> Answer:
    """Ask in a state that does not depend on earlier questions, the file or the process."""
    torch.default_generator.manual_seed(_SEED)
    torch.set_default_dtype(torch.float32)
    return attempt(question)
