"""How well mistakes are named that nobody wrote down: each fault put into each right solution.

The catalogue and the switches make the fingerprints; the right solutions, each in a style of its
own, are changed by `transformations`. What comes out was never looked at when fingerprints were
made. Of the mutants whose answers are wrong at all, it is counted how many are named, and how many
of the names say what was changed. Right solutions that were changed so that they stay right must
never be named.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import torch

from grader.author.running import several
from grader.author.transformations import KEEPING, TRANSFORMATIONS, Transformation
from grader.course import Course, Problem
from grader.testing.diagnosis.fingerprints import Fingerprints, deviations
from grader.testing.diagnosis.naming import diagnose
from grader.testing.diagnosis.probe import Answers, Probe, ask, load_probe


@dataclass(frozen=True)
class Mutant:
    """A right solution with a fault put into it.

    Attributes:
        problem: the problem's id.
        style: the right solution's name.
        fault: the transformation's name.
        source: what came out.
        told: what is said of it; empty when it isn't named.
        is_right: whether one of the names says what was changed.
    """

    problem: str
    style: str
    fault: str
    source: str
    told: tuple[str, ...]
    is_right: bool


@dataclass(frozen=True)
class Generalisation:
    """What came of all mutants.

    Attributes:
        mutants: those that answer a main question with a wrong value.
        right: how many right solutions were asked, each also after changes that keep it right.
        named_though_right: those of them that were given a name.
    """

    mutants: list[Mutant]
    right: int
    named_though_right: list[str]

    def summary(self) -> str:
        """Return the line that one can quote."""
        named = [mutant for mutant in self.mutants if mutant.told]
        right = [mutant for mutant in named if mutant.is_right]
        return (
            f"of {len(self.mutants)} wrong solutions that are in no catalogue, "
            f"{len(named)} are named ({_share(named, self.mutants)}), "
            f"{len(right)} of these rightly ({_share(right, named)}); "
            f"of {self.right} right ones {len(self.named_though_right)} are given a name"
        )


def _share(part: list[Mutant], whole: list[Mutant]) -> str:
    return f"{100 * len(part) / len(whole):.0f} %" if whole else "none"


def generalise(course: Course, problems: list[Problem], jobs: int) -> Generalisation:
    """Put every fault into every right solution of these problems, and see what is named.

    Args:
        course: where the solutions are.
        problems: which of its problems.
        jobs: how many right solutions to change at the same time.
    """
    styles = [(problem, path) for problem in problems for path in _styles(course, problem)]
    with several(jobs) as each:
        found = list(each(_of_style, styles))
    return Generalisation(
        [mutant for one in found for mutant in one.mutants],
        sum(one.right for one in found),
        [style for one in found for style in one.named_though_right],
    )


def _styles(course: Course, problem: Problem) -> list[Path]:
    solution = course.solution(problem)
    return [solution, *sorted((solution.parent / "variants").glob("*.py"))]


def _of_style(style: tuple[Problem, Path]) -> Generalisation:
    """Change one right solution in all ways there are; in a process of the pool."""
    problem, path = style
    probe = load_probe(problem)
    if probe is None:
        return Generalisation([], 0, [])
    torch.set_num_threads(1)
    known = Fingerprints.load(problem.fingerprints)
    source = path.read_text(encoding="utf-8")
    kept = dict.fromkeys(_still_right(source))
    named = [
        f"{problem.id}: {path.stem}, {change}"
        for change, right in kept
        if diagnose(known, _answers(right, probe))
    ]
    mutants = list(_mutants(problem, path.stem, source, probe, known))
    return Generalisation(mutants, len(kept), named)


def _still_right(source: str) -> Iterator[tuple[str, str]]:
    """Yield the source without its comments, and after each change that keeps it right."""
    yield "without comments", ast.unparse(ast.parse(source))
    for change in KEEPING:
        for changed in change.mutants(source):
            yield change.name, changed


def _mutants(
    problem: Problem, style: str, source: str, probe: Probe, known: Fingerprints
) -> Iterator[Mutant]:
    seen: set[str] = set()
    for fault in TRANSFORMATIONS:
        for mutant in fault.mutants(source):
            answers = {} if mutant in seen else _answers(mutant, probe)
            seen.add(mutant)
            if _answers_wrongly(answers, known):
                yield _judged(problem, style, fault, mutant, answers, known)


def _answers_wrongly(answers: dict[str, Answers], known: Fingerprints) -> bool:
    """Tell whether a main answer is a wrong value; what only stops is told by its exception."""
    wrong = deviations(answers, known.reference).values()
    return any(answer.is_value for part in wrong for answer in part.main.values())


def _judged(
    problem: Problem,
    style: str,
    fault: Transformation,
    source: str,
    answers: dict[str, Answers],
    known: Fingerprints,
) -> Mutant:
    told = tuple(each.sentence for each in diagnose(known, answers))
    is_right = any(re.search(fault.says, text) for text in told)
    return Mutant(problem.id, style, fault.name, source, told, is_right)


def _answers(source: str, probe: Probe) -> dict[str, Answers]:
    module = ModuleType("problem_mutant")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(compile(source, "<mutant>", "exec"), module.__dict__)
        except Exception:
            return {}
        return ask(probe, module)
