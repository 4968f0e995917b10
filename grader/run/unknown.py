"""`Unknown`, which replaces oracles and the reference in a worker.

A worker imports the same test files as the trusted process. But in a worker, every name in the
modules of `shared.oracles` is `UNKNOWN`. Any operation on `UNKNOWN` returns `UNKNOWN`. Reading
`UNKNOWN`, for example in an `if`, a loop or a message, raises `AnswerRead`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

ORACLES = "shared.oracles"
"""The package of a course that contains the oracles."""

_GIVES_UNKNOWN = """
    call getitem add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow rpow
    matmul rmatmul neg pos abs invert and rand or ror xor rxor lshift rshift lt le gt ge eq ne
    round copy deepcopy
"""
_CHANGES_NOTHING = "setattr setitem delitem"
_READS = """
    bool iter len int float complex index contains hash array str format next reversed enter
"""


class AnswerRead(Exception):  # noqa: N818  (the test is wrong, not the program)
    """A test reads a right answer, or builds an input from a right answer.

    The audit reports such tests.
    """

    def __init__(self, how: str) -> None:
        super().__init__(f"the test depends on a right answer: {how}")


class Unknown:
    """The type of `UNKNOWN`, which replaces each value that a worker must not know."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Unknown:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return UNKNOWN

    def __repr__(self) -> str:
        return "UNKNOWN"

    @classmethod
    def __torch_function__(
        cls,
        function: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Unknown:
        """Return `UNKNOWN` for any function of torch.

        Raises:
            AnswerRead: the function writes into a known tensor.
        """
        name = getattr(function, "__name__", "")
        written = args[0] if args and _writes(name) else (kwargs or {}).get("out", UNKNOWN)
        return _unless_written(written, name)

    def __array_ufunc__(self, function: Any, method: str, *inputs: Any, **named: Any) -> Unknown:
        """Return `UNKNOWN` for any universal function of NumPy.

        Raises:
            AnswerRead: the function writes into a known array.
        """
        written = inputs[0] if method == "at" else next(iter(named.get("out") or [UNKNOWN]))
        return _unless_written(written, function.__name__)

    def __array_function__(self, function: Any, types: Any, args: Any, named: Any) -> Unknown:
        """Return `UNKNOWN` for any function of NumPy that is not a universal function.

        Raises:
            AnswerRead: the function writes into a known array.
        """
        written = args[0] if function.__name__ in ("copyto", "put") else named.get("out", UNKNOWN)
        return _unless_written(written, function.__name__)


def _writes(name: str) -> bool:
    """Return whether a function of torch writes into its first argument."""
    if name.startswith("__"):
        return name == "__setitem__" or name.startswith("__i") and name != "__invert__"
    return name.endswith("_")


def _unless_written(target: Any, name: str) -> Unknown:
    if not isinstance(target, Unknown):
        raise AnswerRead(f"{name} writes the answer into an input")
    return UNKNOWN


def _unknown(self: Unknown, *args: Any, **named: Any) -> Unknown:
    return UNKNOWN


def _refusal(name: str) -> Callable[..., Any]:
    def refuse(self: Unknown, *args: Any, **named: Any) -> Any:
        raise AnswerRead(f"`{name}` reads the answer")

    return refuse


for _name in _GIVES_UNKNOWN.split():
    setattr(Unknown, f"__{_name}__", _unknown)
for _name in _CHANGES_NOTHING.split():
    setattr(Unknown, f"__{_name}__", lambda *args: None)
for _name in _READS.split():
    setattr(Unknown, f"__{_name}__", _refusal(_name))

UNKNOWN = Unknown()


def is_unknown(value: object) -> bool:
    """Return whether a value is `UNKNOWN`, or a list, tuple or dict that contains `UNKNOWN`."""
    if isinstance(value, dict):
        return any(map(is_unknown, value.values()))
    if isinstance(value, list | tuple):
        return any(map(is_unknown, value))
    return isinstance(value, Unknown)


class _Finder(MetaPathFinder, Loader):
    """Loads an empty module in place of each module with oracles."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        """Return a spec for a module with oracles, and None for any other module."""
        ours = name == ORACLES or name.startswith(f"{ORACLES}.")
        return ModuleSpec(name, self, is_package=True) if ours else None

    def exec_module(self, module: ModuleType) -> None:
        """Make every attribute of the module `UNKNOWN`."""
        module.__getattr__ = UNKNOWN.__getattr__  # type: ignore[method-assign]


@contextmanager
def without_oracles() -> Iterator[None]:
    """In a `with` block, make each name `UNKNOWN` in all imported modules of oracles."""
    finder = _Finder()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
