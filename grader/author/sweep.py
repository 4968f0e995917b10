"""Search torch for functions that give the same answers as a forbidden function.

`swept.py` calls all functions of torch in a sandbox. If a function gives the same answers as a
forbidden function, it is called again: in a worker that removes the forbidden functions, and under
the guard of a student's test run. Both calls should fail. So an author who changes the version of
torch sees which of its new functions to forbid.

The result depends on torch, the forbidden names, and the code that removes them. If a problem has
no findings, `solutions/swept.json` stores a hash of these inputs. The search is repeated for the
problem only if this hash changes.

Each function is called alone, with a few inputs. Combinations of several functions, such as a
softmax that uses `torch.logaddexp`, are not detected.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import torch

from grader.author.code_hash import code_hashes, hash_of
from grader.author.running import several
from grader.code import forbidden as watching
from grader.course import Course, Problem
from grader.errors import CannotLoad
from grader.files import write_whole
from grader.sandbox.sandbox import Sandbox
from grader.sandbox.starting import SandboxError

_SWEPT = Path(__file__).with_name("swept.py")
_WATCHING = Path(watching.__file__)
_REMOVAL = Path(__file__).parents[1] / "sandbox" / "worker" / "removal.py"

_SOURCE = _SWEPT.read_bytes()
_GUARD = _WATCHING.read_text(encoding="utf-8")
"""The source code of the guard. It is sent to workers, which can't import the grader."""

_CALL_SECONDS, _ALL_SECONDS = 5.0, 900.0

_ALSO = {
    "layer_norm": {"layer_norm", "group_norm", "instance_norm", "batch_norm"},
    "MultiheadAttention": {"MultiheadAttention", "multi_head_attention_forward"},
}
"""Maps a name in the results of `swept.py` to all functions of torch that give such answers."""

Ways = dict[str, list[str]]
"""Maps the name of a function to calls that give the answers of a known function.

For example, "softmax=(x)" means that the call with `x` returns the softmax of `x`.
"""


def every(name: str) -> bool:
    """Return True, so that `left_open` calls every function."""
    return True


def sweep_findings(
    course: Course, problems: Iterable[Problem], *, jobs: int = 1, write: bool = False
) -> list[str]:
    """Return a finding for each function of torch that can be called instead of a forbidden one.

    Without a sandbox the result is empty, because calling all functions of torch is unsafe.

    Args:
        course: the course.
        problems: the problems to check.
        jobs: the number of processes. Each process calls some of torch's functions.
        write: whether to store the hashes of problems without findings.
    """
    forbidden = {p.id: [*filter(None, p.entry.all_forbidden())] for p in problems}
    rests_on = {id: _rests_on(sets) for id, sets in forbidden.items() if sets}
    record = course.root / "solutions" / "swept.json"
    kept = _kept(record)
    todo = {id: forbidden[id] for id in rests_on if kept.get(id) != rests_on[id]}
    if not todo:
        return []
    sets = [*dict.fromkeys(names for of_one in todo.values() for names in of_one)]
    with several(jobs) as each:
        shares = [*each(partial(_left_open_of_a_share, sets, jobs), range(jobs))]
    found = {
        id: [text for names in of_one for left in shares for text in left.get(names, [])]
        for id, of_one in todo.items()
    }
    if write and all(shares):  # a share is empty if there is no sandbox
        clean = {id: rests_on[id] for id, sentences in found.items() if not sentences}
        write_whole(record, json.dumps(kept | clean, indent=1, sort_keys=True) + "\n")
    return [f"{id}: {sentence}" for id, sentences in found.items() for sentence in sentences]


def _kept(record: Path) -> dict[str, str]:
    """Return the hash of each problem in `swept.json`, or {} if the file can't be read."""
    try:
        kept = json.loads(record.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return kept if isinstance(kept, dict) else {}


def _rests_on(forbidden: Iterable[tuple[str, ...]]) -> str:
    """Return a hash of all inputs of the search for substitutes of these forbidden functions."""
    files = (Path(__file__), _SWEPT, _WATCHING, _REMOVAL)
    code = code_hashes(path.read_bytes() for path in files)
    return hash_of(torch.__version__.partition("+")[0], *map(" ".join, forbidden), code)


def _left_open_of_a_share(
    sets: list[tuple[str, ...]], shares: int, number: int
) -> dict[tuple[str, ...], list[str]]:
    limits = {"call_seconds": _CALL_SECONDS, "submission_seconds": _ALL_SECONDS}
    with suppress(SandboxError), Sandbox(**limits) as sandbox:  # type: ignore[arg-type]
        return left_open(sandbox, sets, share=slice(number, None, shares))
    return {}


def left_open(
    sandbox: Sandbox,
    sets: Iterable[tuple[str, ...]],
    wanted: Callable[[str], bool] = every,
    share: slice = slice(None),
) -> dict[tuple[str, ...], list[str]]:
    """Return sentences about functions of torch that can be called instead of forbidden ones.

    The keys of the result are the sets of forbidden functions.

    Args:
        sandbox: the sandbox in which the functions are called.
        sets: the sets of forbidden functions, with names as in `grader.code.forbidden.Guard`.
        wanted: returns whether to call the function with this name.
        share: selects some of the wanted names to call.
    """
    (every_name,) = _called(sandbox, [("names",)])
    names = [name for name in every_name if wanted(name)][share]
    free = answering(sandbox, names)
    found = {}
    for forbidden in sets:
        again = [name for name, ways in free.items() if _of(ways, forbidden)]
        removed = answering(sandbox, again, forbidden)
        watched = answering(sandbox, again, watched=forbidden)
        found[forbidden] = [
            *_sentences(removed, forbidden, "where functions are taken away"),
            *_sentences(watched, forbidden, "under the watch of a student's own run"),
        ]
    return found


def answering(
    sandbox: Sandbox,
    names: Iterable[str],
    forbidden: tuple[str, ...] = (),
    watched: tuple[str, ...] = (),
) -> Ways:
    """Call functions of torch, and return the calls that give the answers of a known function.

    The known functions are those in `answers_known` of `swept.py`, and attention.

    Args:
        sandbox: the sandbox in which the functions are called.
        names: the names of the functions to call.
        forbidden: the functions that the worker removes first.
        watched: the functions that the guard forbids, as in a student's test run at home.
    """
    found, left = {}, [*names]
    while left:
        watch = ("watch", _GUARD, watched)
        answers = _called(sandbox, [watch, *(("look", name) for name in left)], forbidden)
        next(answers)
        with suppress(CannotLoad):  # the last call crashed or did not end: skip it
            while left:
                name = left.pop(0)
                if ways := next(answers):
                    found[name] = ways
        answers.close()
    return found


def _called(
    sandbox: Sandbox, calls: Iterable[tuple[Any, ...]], forbidden: tuple[str, ...] = ()
) -> Generator[Any]:
    """Yield the results of calls in a worker that has loaded `swept.py`.

    Args:
        sandbox: the sandbox of the worker.
        calls: the calls, each a tuple of a function's name in `swept.py` and its arguments.
        forbidden: the functions that the worker removes first.
    """
    order, budget = json.dumps([*calls]).encode(), sandbox.budget()
    recorder = sandbox.record(None, order, _SOURCE, forbidden, budget)
    try:
        for _ in json.loads(order):
            yield json.loads(recorder.receive()[0])
    finally:
        recorder.close()


def _of(ways: list[str], forbidden: tuple[str, ...]) -> list[str]:
    """Return the calls in `ways` that give the answers of one of these forbidden functions."""
    return [way for way in ways if _ALSO.get(k := way.partition("=")[0], {k}) & {*forbidden}]


def _sentences(found: Ways, forbidden: tuple[str, ...], where: str) -> Iterator[str]:
    for name, ways in found.items():
        for way in _of(ways, forbidden)[:1]:
            kind, _, how = way.partition("=")
            yield f"{name.replace(':', '.')}{how} answers as {kind}, which is forbidden, {where}"
