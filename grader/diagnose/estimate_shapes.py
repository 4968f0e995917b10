"""What became of shapes and of names, read off what came back."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from grader.diagnose.estimate import Estimate
from grader.text import listed

Shape = tuple[int, ...]

_WAYS: Mapping[str, Callable[[Shape], Shape]] = {
    "the result has a dimension too many, of size 1, at its end": lambda s: (*s, 1),
    "the result has a dimension too many, of size 1, at its start": lambda s: (1, *s),
    "all comes back in one long row": lambda s: (math.prod(s),),
    "all comes back in one column": lambda s: (math.prod(s), 1),
    "all comes back in one long row, and without any dimension where there is one only": (
        lambda s: (math.prod(s),) if math.prod(s) > 1 else ()
    ),
    "every dimension of size 1 is gone from the result": lambda s: tuple(n for n in s if n != 1),
    "a single number comes back, however many rows there are": lambda s: (),
    "a single number comes back, in one dimension": lambda s: (1,),
    "the first dimension of the result is gone": lambda s: s[1:],
    "the last dimension of the result is gone": lambda s: s[:-1],
    "the dimensions of the result stand in reverse order": lambda s: s[::-1],
}
"""How a shape is made of the right one."""

_MOST_NAMES = 4
"""More are counted only."""

_FEWEST = 3
"""So many different shapes must fit one way."""


def about_shapes(
    found: Sequence[Shape | None], wanted: Sequence[Shape], look: str = ""
) -> Iterable[Estimate]:
    """Yield in which way shapes are wrong, if it is the same way for all of them.

    Args:
        found: what came back; None where code stopped or no tensor came.
        wanted: what should have come, for each.
        look: the nudge that goes with it.
    """
    pairs = {
        (shape, right) for shape, right in zip(found, wanted, strict=True) if shape is not None
    }
    if len(pairs) < _FEWEST or all(shape == right for shape, right in pairs):
        return
    ways = [when for when, way in _WAYS.items() if all(way(r) == s for s, r in pairs)]
    if len(ways) == 1:
        yield Estimate(f"estimated: {ways[0]}", ways[0], look)


def about_names(
    found: Mapping[str, Shape], wanted: Mapping[str, Shape], look: str = ""
) -> Iterable[Estimate]:
    """Yield what is missing, or called by another name, if it is one of these alone.

    Args:
        found: the shapes of what there is, by name, with dots between its parts.
        wanted: the shapes of what should be there.
        look: the nudge that goes with it.
    """
    missing = {name: shape for name, shape in wanted.items() if name not in found}
    others = {name: shape for name, shape in found.items() if name not in wanted}
    if not missing:
        return  # what is there beside may be right: second names of a parameter, a buffer
    if not others:
        names = _listed(list(missing)[:_MOST_NAMES])
        more = len(missing) - _MOST_NAMES
        names += f" and {more} more" if more > 0 else ""
        verb = "are" if len(missing) > 1 else "is"
        when = f"{names} {verb} missing, and nothing else"
        yield Estimate(f"estimated: {when}", when, look, is_seen=True)
        return
    right, own = _words(missing, found), _words(others, wanted)
    called = dict(zip(right, own, strict=False))
    renamed = {
        ".".join(called.get(word, word) for word in name.split(".")): shape
        for name, shape in missing.items()
    }
    if missing and len(right) == len(own) and renamed == others:
        is_one = len(right) == 1
        when = (
            f"{_listed(right)} is missing, and there is {_listed(own)} of the same size"
            if is_one
            else f"{_listed(right)} are missing, and there are {_listed(own)} of the same sizes"
        )
        name = f"estimated: {_listed(right)} called {_listed(own)}"
        yield Estimate(name, when, look, is_seen=True)


def _words(names: Iterable[str], others: Iterable[str]) -> list[str]:
    """Return the words of some names that stand in no other name, in their order."""
    known = {word for name in others for word in name.split(".")}
    return list(dict.fromkeys(w for name in names for w in name.split(".") if w not in known))


def _listed(words: Sequence[str]) -> str:
    return listed([f"`{word}`" for word in words])
