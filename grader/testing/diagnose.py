"""Names the mistake behind a wrong answer, by comparing it with what known mistakes answer.

A problem's `probe.py` asks the student's code a few small fixed questions. The answers of the
reference and of every catalogued mistake to the same questions are kept, rounded, in the problem's
`fingerprints.json`. A student whose answers are a mistake's answers has made that mistake.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from grader.course import Problem
from grader.files import write_whole
from grader.forbidden import Guard
from grader.loading import load_module
from grader.testing.course_modules import modules_of_course

Answer = dict[str, Any] | str
"""A tensor as {"dtype", "shape", "values"}, or the name of the exception raised instead."""

_DIGITS = 6
_MOST_ENTRIES = 4096
"""What a probe's answer may hold to be told entry by entry. Probes ask small questions."""

_RELATIVE, _ABSOLUTE = 2e-4, 2e-5
"""How near two answers must be to be the same. Mistakes differ from the reference by more."""

_SHARE_EXPLAINED = 0.6
"""The share of all wrong answers that a mistake must explain to be named. Some mistakes show in few
answers only, and those answers are wrong in many other cases too."""


@dataclass(frozen=True)
class Diagnosis:
    """A known mistake whose answers the student's code gives.

    Attributes:
        mistakes: the names of the mistakes in the catalogue; several when they answer alike.
        text: what to tell the student.
    """

    mistakes: tuple[str, ...]
    text: str


def attempt(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Answer:
    """Call the student's code for a probe; an exception is an answer too.

    Args:
        function: what to call; it returns a tensor, a number or a bool.
        args: its arguments.
        kwargs: its keyword arguments.
    """
    try:
        value = function(*args, **kwargs)
    except KeyboardInterrupt:
        raise
    except BaseException as exception:  # student code may raise SystemExit or worse
        return type(exception).__name__
    return _answer(value)


def _answer(value: object) -> Answer:
    if isinstance(value, bool | int | float):
        value = torch.tensor(float(value), dtype=torch.float64)
    if not isinstance(value, Tensor):
        return f"returned {type(value).__name__}"
    if value.is_meta:
        return "returned a shape without numbers"
    if value.numel() > _MOST_ENTRIES:
        return f"returned {value.numel()} entries"
    values = [_rounded(v) for v in value.detach().double().flatten().tolist()]
    dtype = str(value.dtype).removeprefix("torch.")
    return {"dtype": dtype, "shape": list(value.shape), "values": values}


def _rounded(value: float) -> float | str:
    return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else str(value)


Probe = Callable[[Any], dict[str, Answer]]
"""Asks a student's module some questions; returns the answers by the questions' names."""


def load_probe(problem: Problem) -> Probe | None:
    """Return the `probe` of a problem's `probe.py`; None if there is no such file."""
    if not problem.probe_file.is_file():
        return None
    with modules_of_course(problem.folder.parents[1]):
        probe: Probe = load_module(problem.probe_file, f"probe_{problem.id[:2]}").probe
    return probe


def ask(probe: Probe | None, problem: Any, forbidden: Any) -> dict[str, Answer]:
    """Return the answers of `problem` to the probe; none when it can't be carried out."""
    if probe is None:
        return {}
    torch.default_generator.manual_seed(0)
    with Guard(forbidden):
        try:
            return probe(problem)
        except Exception:
            return {}


def same(a: Answer, b: Answer) -> bool:
    """Return whether two answers are the same but for rounding."""
    if isinstance(a, str) or isinstance(b, str):
        return a == b
    if (a["dtype"], a["shape"]) != (b["dtype"], b["shape"]):
        return False
    return all(_near(x, y) for x, y in zip(a["values"], b["values"], strict=True))


def _near(x: float | str, y: float | str) -> bool:
    if isinstance(x, str) or isinstance(y, str):
        return x == y
    return math.isclose(x, y, rel_tol=_RELATIVE, abs_tol=_ABSOLUTE)


def deviations(answers: Mapping[str, Answer], reference: Mapping[str, Answer]) -> dict[str, Answer]:
    """Return the answers that are not the reference's."""
    return {k: v for k, v in answers.items() if k in reference and not same(v, reference[k])}


class Fingerprints:
    """The answers of the reference and of the known mistakes of one problem.

    Args:
        data: `{"reference": {question: answer}, "mistakes": {name: {"text", "answers"}}}`, where
            a mistake's answers are those that differ from the reference's.
    """

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data

    @classmethod
    def load(cls, path: Path) -> Fingerprints:
        """Read `fingerprints.json`; a problem without one has no known mistakes."""
        if not path.is_file():
            return cls({"reference": {}, "mistakes": {}})
        return cls(json.loads(path.read_text(encoding="utf-8")))

    def save(self, path: Path) -> None:
        """Write `fingerprints.json`, one answer a line."""
        write_whole(path, _json(self.data) + "\n")

    def diagnose(self, answers: Mapping[str, Answer]) -> list[Diagnosis]:
        """Return the mistakes that explain the most of what is wrong in `answers`, at most two.

        A mistake fits when each of its deviations from the reference is found in `answers`. Those
        that explain most come first; a second one is named only for what the first leaves open.
        """
        wrong = deviations(answers, self.data["reference"])
        open_questions = set(wrong)
        found: list[Diagnosis] = []
        while open_questions and len(found) < 2:
            best = self._best(wrong, open_questions)
            if best is None:
                break
            names, explained = best
            found.append(self._diagnosis(names))
            open_questions -= explained
        return found

    def _best(
        self, wrong: Mapping[str, Answer], open_questions: set[str]
    ) -> tuple[list[str], set[str]] | None:
        explained: dict[str, set[str]] = {}
        for name, mistake in self.data["mistakes"].items():
            answers = mistake["answers"]
            fits = answers and all(q in wrong and same(wrong[q], a) for q, a in answers.items())
            if fits and answers.keys() & open_questions:
                explained[name] = answers.keys() & open_questions
        if not explained:
            return None
        most = max(len(questions) for questions in explained.values())
        if most < _SHARE_EXPLAINED * len(open_questions):
            return None
        names = [name for name, questions in explained.items() if len(questions) == most]
        return names, explained[names[0]]

    def _diagnosis(self, names: list[str]) -> Diagnosis:
        texts = [self.data["mistakes"][name]["text"] for name in names]
        return Diagnosis(tuple(names), "\nOr: ".join(dict.fromkeys(texts)))


def _json(value: Any, indent: str = "") -> str:
    """Return a value as JSON: an answer or a text in one line, all else opened line by line."""
    if not isinstance(value, dict) or "dtype" in value or not value:
        return json.dumps(value, ensure_ascii=False)
    inner = indent + " "
    lines = (f"{inner}{json.dumps(key)}: {_json(entry, inner)}" for key, entry in value.items())
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
