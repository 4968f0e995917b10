"""Notices calls of forbidden torch functions, whatever name they are called by.

Two of torch's own hooks watch everything that runs inside `with Guard(names):`

- TorchFunctionMode sees the Python functions, methods and `torch.ops` entries that are called;
- TorchDispatchMode sees the operators that really run, below every alias, `getattr`, TorchScript
  function or module that leads to them.

So a mention in a comment, or an import that is never used, isn't a call, and an alias doesn't help.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from typing import Any

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


class ForbiddenCall(Exception):  # noqa: N818  (it is a finding, not an error of the program)
    """Student code called a function that the problem asks it to do without."""


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
        self._traces = {trace: name for name in names for trace in _TRACES[name]}
        self.called: str | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Guard:
        if self._traces:
            self._stack.enter_context(_Operators(self))
            self._stack.enter_context(_Functions(self))
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def look_at(self, name: str) -> None:
        """Raise ForbiddenCall when `name`, of a torch function or operator, is a forbidden one."""
        for trace, forbidden in self._traces.items():
            if trace in name:
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
