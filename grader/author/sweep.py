"""Looks for what torch offers that answers as a forbidden function does, under whatever name.

`swept.py` calls all of torch in a sandbox. What answers there as some function that a problem
forbids is called again in a worker from which these have been taken away, and once more under the
watch of a student's own run. Nothing should be left that answers. Whoever moves the course to
another version of torch learns here what that one has added.

Only single calls are tried, on a few inputs: what takes several of torch's functions to build, such
as a softmax out of `torch.logaddexp`, is found by nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from grader.author.running import several
from grader.boundary import Boundary, BoundaryError
from grader.boundary.proxy.caller import RemoteProblem
from grader.code import forbidden as watching
from grader.code.forbidden import ForbiddenCall
from grader.course import Course, Problem
from grader.run.suite import Suite

_SOURCE = (Path(__file__).parent / "swept.py").read_bytes()
_GUARD = Path(watching.__file__).read_text(encoding="utf-8")
_GUARD = _GUARD.replace("from grader.code.tensors import torch", "import torch")
"""What watches for forbidden functions, as a worker can load it, which has nothing of ours."""

_CALL_SECONDS, _ALL_SECONDS = 5.0, 900.0

_ALSO = {
    "layer_norm": {"layer_norm", "group_norm", "instance_norm", "batch_norm"},
    "MultiheadAttention": {"MultiheadAttention", "multi_head_attention_forward"},
}
"""Forbidden functions that give the same answers, by the one that `swept.py` names."""

Ways = dict[str, list[str]]
"""What answers as some function, by its name: how it is called, each as "function=(x)"."""


def every(name: str) -> bool:
    """Let all names be called."""
    return True


def sweep_findings(
    course: Course,
    problems: Iterable[Problem],
    wanted: Callable[[str], bool] = every,
    *,
    jobs: int = 1,
) -> list[str]:
    """Return a sentence for each function of torch that answers though it is forbidden.

    There are none where there is no sandbox: all of torch is called, with any rights it has.

    Args:
        course: where the problems are.
        problems: whose forbidden functions are looked for.
        wanted: which names of torch to call.
        jobs: how many processes share the names among them.
    """
    forbidden = {p.id: Suite([p], course.root).tests_of(p).forbidden for p in problems}
    sets = [*dict.fromkeys(names for names in forbidden.values() if names)]
    if not sets:
        return []
    with several(jobs) as each:
        shares = [*each(partial(_left_open_of_a_share, sets, wanted, jobs), range(jobs))]
    return [
        f"{id}: {sentence}"
        for id, names in forbidden.items()
        for left in shares
        for sentence in left.get(names, [])
    ]


def _left_open_of_a_share(
    sets: list[tuple[str, ...]], wanted: Callable[[str], bool], shares: int, number: int
) -> dict[tuple[str, ...], list[str]]:
    limits = {"call_seconds": _CALL_SECONDS, "submission_seconds": _ALL_SECONDS}
    with suppress(BoundaryError), Boundary("sandbox", **limits) as boundary:  # type: ignore[arg-type]
        return left_open(boundary, sets, wanted, slice(number, None, shares))
    return {}


def left_open(
    boundary: Boundary,
    sets: Iterable[tuple[str, ...]],
    wanted: Callable[[str], bool] = every,
    share: slice = slice(None),
) -> dict[tuple[str, ...], list[str]]:
    """Return for each set of forbidden functions what answers all the same, in sentences.

    Args:
        boundary: where torch is called.
        sets: of forbidden functions, as `grader.code.forbidden.Guard` names them.
        wanted: which names of torch to call.
        share: which of these.
    """
    names = [name for name in boundary.open(_SOURCE).names() if wanted(name)][share]
    free = answering(boundary, names)
    found = {}
    for forbidden in sets:
        again = [name for name, ways in free.items() if _of(ways, forbidden)]
        removed = answering(boundary, again, forbidden)
        watched = answering(boundary, again, watched=forbidden)
        found[forbidden] = [
            *_sentences(removed, forbidden, "where functions are taken away"),
            *_sentences(watched, forbidden, "under the watch of a student's own run"),
        ]
    return found


def answering(
    boundary: Boundary,
    names: Iterable[str],
    forbidden: tuple[str, ...] = (),
    watched: tuple[str, ...] = (),
) -> Ways:
    """Return what answers as some function that the course forbids somewhere.

    Args:
        boundary: where torch is called.
        names: what to call.
        forbidden: functions that are taken away.
        watched: functions that are watched as in a student's own run.
    """

    def opened() -> RemoteProblem:
        problem = boundary.open(_SOURCE, forbidden)
        if watched:
            problem.watch(_GUARD, list(watched))
        return problem

    found, problem = {}, opened()
    for name in names:
        try:
            with suppress(ForbiddenCall):
                problem.look(name)
            ways = problem.last()
        except BoundaryError:
            raise
        except Exception:  # it crashed, did not end, or harmed what it ran in
            problem.close()
            ways, problem = [], opened()
        if ways:
            found[name] = ways
    problem.close()
    return found


def _of(ways: list[str], forbidden: tuple[str, ...]) -> list[str]:
    """Return those of some ways that lead to what is forbidden."""
    return [way for way in ways if _ALSO.get(k := way.partition("=")[0], {k}) & {*forbidden}]


def _sentences(found: Ways, forbidden: tuple[str, ...], where: str) -> Iterator[str]:
    for name, ways in found.items():
        for way in _of(ways, forbidden)[:1]:
            kind, _, how = way.partition("=")
            yield f"{name.replace(':', '.')}{how} answers as {kind}, which is forbidden, {where}"
