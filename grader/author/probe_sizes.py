"""Find pairs of arguments with the same relation in all questions of a probe.

For example, if `n = 2 * m` in all questions, the probe cannot detect a formula that contains
`2 * m` instead of `n`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import wraps
from itertools import permutations
from typing import Any

from grader.code.loading import load_module
from grader.course import Course, Problem
from grader.diagnose.answers import attempt
from grader.diagnose.probe import load_probe

SizesOfCall = Mapping[str, int]

_RELATIONS: dict[str, Callable[[int, int], bool]] = {
    "{0} + 1 = {1}": lambda a, b: a + 1 == b,
    "{0} = 2 * {1}": lambda a, b: a == 2 * b,
    "{0} + 1 = 2 * {1}": lambda a, b: a + 1 == 2 * b,
    "{0} - 1 = 2 * {1}": lambda a, b: a - 1 == 2 * b,
}


def related_sizes(course: Course, problem: Problem) -> Iterator[str]:
    """Yield a finding for each pair of arguments with the same relation in all calls by a probe."""
    probe = load_probe(problem)
    if probe is None:
        return
    reference = load_module(course.solution(problem), "reference_of_sizes")
    calls: dict[str, list[SizesOfCall]] = {}
    for name, function in [*vars(reference).items()]:
        if inspect.isfunction(function) and function.__module__ == reference.__name__:
            setattr(reference, name, _recorded(function, calls.setdefault(name, [])))
    with suppress(Exception):  # the audit also runs the probe, and reports its errors
        for part in probe(reference).values():
            for question in part.main.values():
                attempt(question)
    for name, of_one in calls.items():
        yield from (f"{problem.id}: in all questions about {name}, {r}" for r in _related(of_one))


def _recorded(function: Callable[..., Any], calls: list[SizesOfCall]) -> Callable[..., Any]:
    """Return a wrapper that appends the integer arguments of each call to `calls`."""
    signature = inspect.signature(function)

    @wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        bound = signature.bind(*arguments, **named)
        bound.apply_defaults()
        calls.append({n: value for n, value in bound.arguments.items() if type(value) is int})
        return function(*arguments, **named)

    return call


def _related(calls: list[SizesOfCall]) -> Iterator[str]:
    """Yield the relations between two sizes that are true in all calls. Ignore constant sizes."""
    names = [n for n in (calls[0] if calls else ()) if len({c.get(n) for c in calls}) > 1]
    for one, other in permutations(names, 2):
        for text, holds in _RELATIONS.items():
            if all(one in c and other in c and holds(c[one], c[other]) for c in calls):
                yield text.format(one, other)
