"""Notices calls of forbidden torch functions, whatever name they are called by.

Two of torch's own hooks watch everything that runs inside `with Guard(names):`

- TorchFunctionMode sees the Python functions, methods and `torch.ops` entries that are called;
- TorchDispatchMode sees the operators that really run, below every alias, `getattr`, TorchScript
  function or module that leads to them.

So a mention in a comment, or an import that is never used, isn't a call, and an alias doesn't help.

A hook can be taken away by the code that it watches, and it makes every call slower. `removal` is
for processes that run nothing but such code: it takes the forbidden functions themselves away.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import warnings
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from types import CodeType, FunctionType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

# Parts of the names of functions and operators that betray a call. torch runs its fused attention
# as one of several kernels; the plain one shows only in `_safe_softmax`, which nothing else calls.
_TRACES = {
    "softmax": ("softmax",),
    "softmin": ("softmin",),
    "log_softmax": ("log_softmax",),
    "logsumexp": ("logsumexp",),
    "scaled_dot_product_attention": ("scaled_dot_product", "safe_softmax"),
    "multi_head_attention_forward": ("multi_head_attention",),
    "MultiheadAttention": ("multi_head_attention", "transformer_encoder_layer"),
}


def without_compiler() -> None:
    """Let `torch.compile` give back what it is given, so that code runs as it is written.

    A compiler writes files and starts programs, and tests are too small to gain from it.
    """

    def compile(model: Any = None, *_: Any, **__: Any) -> Any:
        return (lambda model: model) if model is None else model

    torch.compile = compile


class ForbiddenCall(Exception):  # noqa: N818  (it is a finding, not an error of the program)
    """Student code called a function that the problem asks it to do without."""


def _traces(names: Iterable[str]) -> dict[str, str]:
    return {trace: name for name in names for trace in _TRACES[name]}


def _find(traces: dict[str, str], name: str) -> str | None:
    return next((forbidden for trace, forbidden in traces.items() if trace in name), None)


class _Findings(dict[str, str | None]):
    """What each name that was looked at betrays. Thousands are looked at, and few differ."""

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__()
        self.traces = _traces(names)

    def __missing__(self, name: str) -> str | None:
        found = self[name] = _find(self.traces, name)
        return found


_findings = functools.cache(_Findings)


class Guard:
    """A context in which calls of the named functions raise ForbiddenCall and are remembered.

    Args:
        names: the forbidden functions, each a key of the table above.

    Attributes:
        called: the name of the first forbidden function that was called, or None. It stays set when
            the student's code catches the exception.

    Raises:
        KeyError: a name isn't known here.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._findings = _findings(tuple(names))
        self.called: str | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Guard:
        if self._findings.traces:
            self._stack.enter_context(_Operators(self))
            self._stack.enter_context(_Functions(self))
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def look_at(self, name: str) -> None:
        """Raise ForbiddenCall when `name`, of a torch function or operator, is a forbidden one."""
        forbidden = self._findings[name]
        if forbidden is not None:
            self.called = self.called or forbidden
            raise ForbiddenCall(forbidden)


class _Functions(TorchFunctionMode):
    def __init__(self, guard: Guard) -> None:
        super().__init__()
        self._guard = guard

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        self._guard.look_at(getattr(func, "__name__", ""))
        return func(*args, **(kwargs or {}))


class _Operators(TorchDispatchMode):
    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # Nothing is compiled here; without this, newer versions of torch make each call slower.
        return False

    def __init__(self, guard: Guard) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._guard = guard

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        self._guard.look_at(func._schema.name)
        return func(*args, **(kwargs or {}))


# Where only a student's code runs: nothing to call

_BACKENDS = ("CPU", "MkldnnCPU", "SparseCPU", "NestedTensorCPU")


@functools.cache
def operators() -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the operators that `removal` may take away, and for which backends each has a kernel.

    It takes some milliseconds, so a process that forks others had better ask beforehand.
    """
    every = _traces(_TRACES)
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    found = {
        name: tuple(backend for backend in _BACKENDS if has_kernel(name, backend))
        for name in torch._C._dispatch_get_all_op_names()
        if name.startswith("aten::") and _find(every, name)
    }
    return tuple((name, backends or _BACKENDS[:1]) for name, backends in found.items())


@functools.cache
def functions() -> tuple[FunctionType, ...]:
    """Return the functions written in Python that `removal` may take away.

    They are those of the modules of torch that are loaded by now. It takes some time, too.
    """
    every = _traces(_TRACES)
    modules = [module for name, module in sys.modules.items() if name.startswith("torch.")]
    values = (value for module in modules for value in list(vars(module).values()))
    found: dict[int, FunctionType] = {}
    for value in values:
        while type(value) is FunctionType and _find(every, value.__name__):
            found[id(value)] = value
            value = getattr(value, "__wrapped__", None)  # what a decorator of the same name calls
    return tuple(found.values())


def removal(names: Iterable[str]) -> Callable[[], Callable[[], str | None]]:
    """Prepare to take the forbidden functions away from this process, for good.

    Each of their operators gets a kernel that raises ForbiddenCall, in all threads and below all
    of torch's modes. Nothing in Python refers to what holds these kernels in place, so the former
    ones can't be had back. What torch has written in Python, such as multi_head_attention_forward,
    gets code that raises ForbiddenCall, whatever name it goes by. All is prepared here, before any
    code runs that could patch it.

    Args:
        names: the forbidden functions, as for Guard.

    Returns:
        A function to call once. It returns another, which tells the forbidden function that was
        called since it was last asked, or None.
    """
    traces = _traces(names)
    called: list[str] = []
    found = [(name, backends, _find(traces, name)) for name, backends in operators()]
    kernels = [
        (name, backend, _refusal(forbidden, called))
        for name, backends, forbidden in found
        if forbidden is not None
        for backend in backends
    ]
    refusals = [
        (function, _refusing(function.__code__), {"refusal": _refusal(forbidden, called)})
        for function in functions()
        if (forbidden := _find(traces, function.__name__)) is not None
    ]
    # torch warns of the first kernel that is replaced, and a student may turn warnings into errors.
    # So all are replaced for a moment here; the first alone may have had no kernel before.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _replace_kernels(_library(), kernels)
    library = _library()
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(library))  # when it goes, so do its kernels

    def remove(replace_kernels: Any = _replace_kernels) -> Callable[[], str | None]:
        replace_kernels(library, kernels)
        for function, code, keywords in refusals:
            function.__code__, function.__kwdefaults__ = code, keywords
        return lambda: called.pop() if called else None

    return remove


def _library() -> Any:
    return torch._C._dispatch_library("IMPL", "aten", "", __file__, 0)


def _replace_kernels(library: Any, kernels: list[tuple[str, str, Callable[..., Any]]]) -> None:
    for name, backend, kernel in kernels:
        library.impl(name.removeprefix("aten::"), backend, kernel, False)


def _refusing(code: CodeType) -> CodeType:
    """Return code to take the place of a function's, which raises what its `refusal` raises."""
    # Python wants to find as many variables of outer functions as before.
    return _refused.__code__.replace(co_freevars=code.co_freevars)


def _refused(*args: Any, refusal: Callable[[], Any], **kwargs: Any) -> Any:
    return refusal()


def _refusal(forbidden: str, called: list[str]) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        called[:] = called or [forbidden]
        raise ForbiddenCall(forbidden)

    return refuse
