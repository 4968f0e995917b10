"""How well mistakes are named in a style they were not written down in: mistake x style.

A mistake is an edit of one right file. Where it fits another one as well, it is made there, and
asked for its name, while all that was written down in this other style is left out of what is
known. What comes out was never looked at when fingerprints were made.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from grader.author.running import several
from grader.code.quiet import quiet
from grader.course import Course, Problem
from grader.diagnose.edits import Edit, apply, mistakes_of
from grader.diagnose.fingerprints import Fingerprints, deviations
from grader.diagnose.naming import diagnose
from grader.diagnose.probe import Answers, Probe, ask, load_probe
from grader.errors import CourseError
from grader.run.own_tests import as_problem


@dataclass(frozen=True)
class Crossed:
    """A mistake in a style that it was not written down in.

    Attributes:
        problem: the problem's id.
        style: the right file's name.
        mistake: the mistake's.
        told: what is said of it; empty when it isn't named.
        is_right: whether its own sentence is told.
    """

    problem: str
    style: str
    mistake: str
    told: tuple[str, ...]
    is_right: bool


@dataclass(frozen=True)
class Generalisation:
    """What came of all mistakes in all styles that they fit: those that answer a wrong value."""

    crossed: list[Crossed]

    def summary(self) -> str:
        """Return the line that one can quote."""
        named = [each for each in self.crossed if each.told]
        right = [each for each in named if each.is_right]
        return (
            f"of {len(self.crossed)} mistakes in a style that they were not written down in, "
            f"{len(named)} are named ({_share(named, self.crossed)}), "
            f"{len(right)} of these by their own sentence ({_share(right, named)})"
        )


def _share(part: list[Crossed], whole: list[Crossed]) -> str:
    return f"{100 * len(part) / len(whole):.0f} %" if whole else "none"


def generalise(course: Course, problems: list[Problem], jobs: int) -> Generalisation:
    """Make every mistake in every right file that it fits, and see what is named.

    Args:
        course: where the solutions are.
        problems: which of its problems.
        jobs: how many right solutions to change at the same time.
    """
    styles = [(problem, style) for problem in problems for style in course.right_files(problem)]
    with several(jobs) as each:
        found = list(each(_in_style, [course] * len(styles), styles))
    return Generalisation([crossed for of_style in found for crossed in of_style])


def _in_style(course: Course, style: tuple[Problem, str]) -> list[Crossed]:
    """Make all mistakes in one right file; in a process of the pool."""
    problem, name = style
    probe = load_probe(problem)
    if probe is None:
        return []
    torch.set_num_threads(1)
    edits = [mistake.edit for mistake in mistakes_of(course, problem)]
    others = [edit for edit in edits if edit.base != name]
    own = {edit.name for edit in edits if edit.base == name}
    known = Fingerprints.load(problem.fingerprints)
    left = tuple(fault for fault in known.faults if fault.name not in own)
    path = course.right_files(problem)[name]
    return list(_crossed(style, path, others, probe, replace(known, faults=left)))


def _crossed(
    style: tuple[Problem, str], path: Path, edits: list[Edit], probe: Probe, known: Fingerprints
) -> Iterator[Crossed]:
    source = path.read_text(encoding="utf-8")
    for edit in edits:
        with suppress(CourseError):  # most don't fit
            answers = _answers(apply(edit, source), probe)
            if _answers_wrongly(answers, known):
                told = tuple(each.sentence for each in diagnose(known, answers))
                is_right = any(edit.when in text for text in told)
                yield Crossed(style[0].id, style[1], edit.name, told, is_right)


def _answers_wrongly(answers: dict[str, Answers], known: Fingerprints) -> bool:
    """Tell whether a main answer is a wrong value; what only stops is told by its exception."""
    wrong = deviations(answers, known.reference).values()
    return any(answer.is_value for part in wrong for answer in part.main.values())


def _answers(source: str, probe: Probe) -> dict[str, Answers]:
    with warnings.catch_warnings(), quiet(), torch.enable_grad():
        warnings.simplefilter("ignore")
        try:
            code = as_problem(source.encode())
        except Exception:
            return {}
        return ask(probe, code)
