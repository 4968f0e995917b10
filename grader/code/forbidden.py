"""Detect calls of forbidden torch functions under any name.

Three mechanisms watch all code inside `with Guard(names):`

- TorchFunctionMode detects calls of Python functions, methods and `torch.ops` entries.
- TorchDispatchMode detects each operator that runs, including operators that are called by an
  alias, `getattr`, a TorchScript function or a module.
- Neither mode detects functions that torch defines in Python, such as SoftmaxTransform. Inside of
  the block, the code of these functions is replaced by code that raises ForbiddenCall.

A comment or an unused import that contains a forbidden name is allowed. A call under another name
is detected.

Student code can disable these modes, and they make every call slower. Therefore the sandbox removes
the functions from a worker instead (`sandbox/worker/removal.py`).
"""

from __future__ import annotations

import functools
import gc
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from types import CodeType, FunctionType
from typing import Any

import torch

TorchFunctionMode = torch.overrides.TorchFunctionMode
TorchDispatchMode = torch.utils._python_dispatch.TorchDispatchMode
_disable_current_modes = torch.utils._python_dispatch._disable_current_modes

TORCH = os.path.dirname(torch.__file__) + os.sep
"""The folder of torch's Python code."""

_DECOMPOSITIONS = os.path.join(TORCH, "_decomp", "")
"""The folder of code that torch compiles when it first computes a forward-mode derivative."""

# Maps each forbidden function to its traces. A trace is a part of the names of functions and
# operators that reveal a call. Upper and lower case are not distinguished. torch has several
# kernels for attention. The plain kernel is detected only because it calls `_safe_softmax`.
_POINTWISE = ("linear_pointwise", "convolution_pointwise", "transpose_pointwise", "qconv")
_REORDERED = ("mkldnn_reorder", "_reorder_linear", "_reorder_convolution", "_reorder_mkldnn")
_TRACES = {
    "softmax": ("softmax",),
    "softmin": ("softmin",),
    "log_softmax": ("log_softmax",),
    # The last entry of logcumsumexp is logsumexp.
    "logsumexp": ("logsumexp", "logcumsumexp"),
    "scaled_dot_product_attention": (
        "scaled_dot_product",
        "safe_softmax",
        "flex_attention",
        "math_attention",
        "onnx::Attention",
        "attention_23",
    ),
    "multi_head_attention_forward": ("multi_head_attention",),
    "MultiheadAttention": (
        "multi_head_attention",
        "transformer_encoder_layer",
        "MultiheadAttention",
    ),
    # Some other operators can also apply a GELU to their result.
    "gelu": ("gelu", "addmm_activation", *_POINTWISE),
    # For tensors of MKL-DNN, TorchScript contains a layer norm that the modes do not detect.
    # Therefore such tensors are also forbidden. A name that ends in () is a function's whole name.
    "layer_norm": ("layer_norm", "_normalize()", "to_mkldnn", *_REORDERED),
    "group_norm": ("group_norm",),
    "instance_norm": ("instance_norm",),
    "batch_norm": ("batch_norm",),
    "rms_norm": ("rms_norm",),
    "TransformerEncoderLayer": ("transformer_encoder_layer", "TransformerEncoderLayer"),
    # The constructor of each optimizer calls methods of the base class Optimizer.
    "optim": ("Optimizer", "::_fused_ada", "::_fused_sgd"),
    "clip_grad_norm_": ("clip_grad", "get_total_norm()"),
    # Functions and operators with which torch.func and torch.autograd compute derivatives.
    "autograd": (
        "backward",
        "make_dual",
        "enter_dual_level()",
        "_vjp_with_argnums()",
        "_jvp_with_argnums()",
        "grad_and_value_impl()",
        "_autograd_grad()",
        "gradcheck()",
        "register_hook()",
    ),
}


_FOLDERS = {"optim": "/optim/"}
"""Maps a name in `_TRACES` to a folder of torch. All functions in the folder are forbidden."""


def without_compiler() -> None:
    """Make `torch.compile` return its argument unchanged.

    The compiler writes files and starts programs, and tests are too small to become faster.
    """

    def compile(model: Any = None, *_: Any, **__: Any) -> Any:
        return (lambda model: model) if model is None else model

    torch.compile = compile


def allow_causal_masks() -> None:
    """Allow code in a torch mode to create torch's attention masks, such as `causal_lower_right`.

    The class of these masks is a subclass of Tensor. Without this change, torch can't create such
    masks while a mode is active.
    """
    module = sys.modules.get("torch.nn.attention.bias")  # an import would take a second
    if module is None or "__new__" in vars(module.CausalBias):
        return

    def new(cls: Any, *args: Any, **kwargs: Any) -> Any:
        with _disable_current_modes():
            return torch.Tensor.__new__(cls, *args, **kwargs)

    module.CausalBias.__new__ = new


class ForbiddenCall(Exception):  # noqa: N818  (a broken rule, not an error of the program)
    """Student code called a function that the problem forbids."""


class ForbiddenNames(dict[str, str | None]):
    """A cached mapping from the name of a function or operator to a forbidden function, or None.

    A trace is a part of a name that reveals a forbidden function. If a name contains several
    traces, the longest one decides: `log_softmax` isn't `softmax`.

    Args:
        names: the forbidden functions; by default all known functions.

    Attributes:
        traces: for each trace in lower case, its forbidden function.
        folders: maps a folder of torch to the name in `names` that forbids all functions in it.

    Raises:
        KeyError: `names` contains an unknown name.
    """

    def __init__(self, names: Iterable[str] = tuple(_TRACES)) -> None:
        super().__init__()
        names = tuple(names)
        self.traces = {trace.lower(): name for name in names for trace in _TRACES[name]}
        self.folders = {_FOLDERS[name]: name for name in names if name in _FOLDERS}

    def __missing__(self, name: str) -> str | None:
        found = [trace for trace in self.traces if trace in name.lower()]
        self[name] = self.traces[max(found, key=len)] if found else None
        return self[name]


# Methods that don't compute. A forbidden module may be created and printed, but not called.
_MAKING = ("reset_parameters", "extra_repr", "_get_name", "from_", "merge_masks")


def forbidden_code(forbidden_names: ForbiddenNames, code: CodeType) -> str | None:
    """Return the forbidden function that this code belongs to, or None for other code.

    In a class such as MultiheadAttention, only methods that compute are forbidden.
    """
    if not code.co_filename.startswith(TORCH):
        return None
    for folder, forbidden in forbidden_names.folders.items():
        if folder in code.co_filename:
            return forbidden
    owner, _, name = code.co_qualname.rpartition(".")
    makes = name != "__call__" and (name.startswith("__") or any(m in name for m in _MAKING))
    return forbidden_names[f"{name}()"] or forbidden_names["" if makes else owner]


def functions_of_torch(forbidden_names: ForbiddenNames) -> tuple[FunctionType, ...]:
    """Find the loaded functions of torch that are written in Python and forbidden.

    This takes a tenth of a second.
    """
    frozen = gc.get_freeze_count()
    gc.unfreeze()  # get_objects does not return frozen objects
    found = tuple(
        thing
        for thing in gc.get_objects()
        if type(thing) is FunctionType and forbidden_code(forbidden_names, thing.__code__)
    )
    if frozen:
        gc.freeze()
    return found


def refuse(function: FunctionType, refusal: Callable[..., Any]) -> None:
    """Replace a function's code by a call of `refusal`. This affects all names of the function.

    Args:
        function: a function that is written in Python.
        refusal: a function that is called with the same arguments and usually raises an exception.
    """
    # Python requires that the new code has the same number of free variables.
    function.__code__ = _refused.__code__.replace(co_freevars=function.__code__.co_freevars)
    function.__kwdefaults__ = {"refusal": refusal}


def _refused(*args: Any, refusal: Callable[..., Any], **kwargs: Any) -> Any:
    return refusal(*args, **kwargs)


_forbidden_names = functools.cache(ForbiddenNames)


def modules_of_torch() -> int:
    """Return the number of loaded modules of torch, which caches use as a part of their key."""
    return _modules_of_torch(len(sys.modules))


@functools.lru_cache(1)
def _modules_of_torch(modules: int) -> int:
    return sum(name.startswith("torch") for name in sys.modules)


@functools.lru_cache(8)
def _functions_by_now(
    names: tuple[str, ...], modules: int
) -> tuple[tuple[FunctionType, str | None], ...]:
    """Return the loaded Python functions of torch that are forbidden.

    Each function is paired with the name in `names` that forbids it.

    Args:
        names: the names of the forbidden functions.
        modules: the number of loaded modules of torch, as a part of the cache key.
    """
    forbidden_names = _forbidden_names(names)
    found = functions_of_torch(forbidden_names)
    named = [(function, forbidden_code(forbidden_names, function.__code__)) for function in found]
    return tuple(
        (function, name)
        for function, name in named
        if name == "autograd" or not function.__code__.co_filename.startswith(_DECOMPOSITIONS)
    )


def _is_differentiating() -> bool:
    """Return whether autograd or a transform of torch.func is running."""
    level = torch._C._functorch.peek_interpreter_stack()
    if level is not None and level.key().name in ("Grad", "Jvp"):
        return True
    return torch._C._current_autograd_node() is not None


class Guard:
    """A context in which calls of forbidden functions raise ForbiddenCall and are recorded.

    Args:
        names: the forbidden functions, each a key of `_TRACES`.
        may_differentiate: returns True while the running code may use autograd, although autograd
            is forbidden. For example, tests use autograd to compute expected values.

    Attributes:
        called: the name of the first forbidden function that was called, or None. The name is kept
            even if the student's code catches the exception.

    Raises:
        KeyError: a name is unknown.
    """

    def __init__(
        self, names: Iterable[str], may_differentiate: Callable[[], bool] = lambda: False
    ) -> None:
        self._names = tuple(names)
        self._forbidden_names = _forbidden_names(self._names)
        self._may_differentiate = may_differentiate
        self.called: str | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Guard:
        if self._names:
            allow_causal_masks()
            self._stack.enter_context(self._other_code())
            self._stack.enter_context(_Operators(self))
            self._stack.enter_context(_Functions(self))
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def look_at(self, name: str) -> None:
        """Raise ForbiddenCall if the function or operator of torch with this name is forbidden."""
        forbidden = self._forbidden_names[name]
        if forbidden is None and "autograd" in self._names and _is_differentiating():
            forbidden = "autograd"
        self._refuse(forbidden)

    def _refuse(self, forbidden: str | None) -> None:
        if forbidden is None or (forbidden == "autograd" and self._may_differentiate()):
            return
        self.called = self.called or forbidden
        raise ForbiddenCall(forbidden)

    @contextmanager
    def _other_code(self) -> Iterator[None]:
        """In a `with` block, make torch's forbidden Python functions raise ForbiddenCall."""
        forbidden = _functions_by_now(self._names, modules_of_torch())
        before = [(f, f.__code__, f.__kwdefaults__) for f, _ in forbidden]
        try:
            for function, name in forbidden:
                refuse(function, self._refusal(function, name))
            yield
        finally:
            for function, code, defaults in before:
                function.__code__, function.__kwdefaults__ = code, defaults

    def _refusal(self, function: FunctionType, name: str | None) -> Callable[..., Any]:
        """Return a replacement for `function`.

        The replacement raises ForbiddenCall if the call is forbidden. Otherwise it runs the code of
        `function`.
        """
        code, defaults = function.__code__, function.__kwdefaults__

        def refusal(*args: Any, **kwargs: Any) -> Any:
            self._refuse(name)
            inside = function.__globals__, function.__name__, function.__defaults__
            before = FunctionType(code, *inside, function.__closure__)
            before.__kwdefaults__ = defaults
            return before(*args, **kwargs)

        return refusal


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
        return False  # otherwise newer versions of torch make each call slower

    def __init__(self, guard: Guard) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._guard = guard

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        self._guard.look_at(func._schema.name)
        return func(*args, **(kwargs or {}))
