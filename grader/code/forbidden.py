"""Detect calls of forbidden torch functions under any name.

Three mechanisms watch all code inside `with Guard(names):`

- TorchFunctionMode sees calls of Python functions, methods and `torch.ops` entries.
- TorchDispatchMode sees each operator that runs, including operators that are called by an alias,
  `getattr`, a TorchScript function or a module.
- Neither mode sees functions that torch defines in Python, such as SoftmaxTransform. Inside of the
  block, the code of these functions is replaced by code that raises ForbiddenCall.

So a mention in a comment or an unused import isn't a call, and an alias doesn't hide a call.

Watched code can remove such a mode, and modes make every call slower. So the sandbox removes the
functions from a worker instead (`sandbox/worker/removal.py`).
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
"""The folder of code that torch compiles at the first derivative in forward mode."""

# Parts of names of functions and operators that reveal a call, ignoring case. torch has several
# kernels for attention; the plain kernel is revealed only by its call of `_safe_softmax`.
_POINTWISE = ("linear_pointwise", "convolution_pointwise", "transpose_pointwise", "qconv")
_REORDERED = ("mkldnn_reorder", "_reorder_linear", "_reorder_convolution", "_reorder_mkldnn")
_TRACES = {
    "softmax": ("softmax",),
    "softmin": ("softmin",),
    "log_softmax": ("log_softmax",),
    # The last cumulative sum is the sum.
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
    # Some other operators can apply a GELU at the end.
    "gelu": ("gelu", "addmm_activation", *_POINTWISE),
    # For tensors of MKL-DNN, TorchScript has a layer norm that bypasses the dispatcher, so such
    # tensors are forbidden, too. A name that ends in () is the whole name of a function.
    "layer_norm": ("layer_norm", "_normalize()", "to_mkldnn", *_REORDERED),
    "group_norm": ("group_norm",),
    "instance_norm": ("instance_norm",),
    "batch_norm": ("batch_norm",),
    "rms_norm": ("rms_norm",),
    "TransformerEncoderLayer": ("transformer_encoder_layer", "TransformerEncoderLayer"),
    # An optimizer's constructor calls methods of this base class.
    "optim": ("Optimizer", "::_fused_ada", "::_fused_sgd"),
    "clip_grad_norm_": ("clip_grad", "get_total_norm()"),
    # Functions that torch.func and torch.autograd finally call, and operators for derivatives.
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
"""The folder of torch that contains only forbidden functions, by the name in `_TRACES`."""


def without_compiler() -> None:
    """Make `torch.compile` return its argument unchanged.

    A compiler writes files and starts programs, and tests are too small to benefit.
    """

    def compile(model: Any = None, *_: Any, **__: Any) -> Any:
        return (lambda model: model) if model is None else model

    torch.compile = compile


def allow_causal_masks() -> None:
    """Allow the creation of torch's attention masks (`causal_lower_right`) in a torch mode.

    The class of these masks is a subclass of Tensor. In a mode, torch can't create its objects.
    """
    module = sys.modules.get("torch.nn.attention.bias")  # it takes a second to import
    if module is None or "__new__" in vars(module.CausalBias):
        return

    def new(cls: Any, *args: Any, **kwargs: Any) -> Any:
        with _disable_current_modes():
            return torch.Tensor.__new__(cls, *args, **kwargs)

    module.CausalBias.__new__ = new


class ForbiddenCall(Exception):  # noqa: N818  (a finding, not an error of the program)
    """Student code called a function that the problem forbids."""


class ForbiddenNames(dict[str, str | None]):
    """A cached mapping from each name of a function or operator to a forbidden function, or None.
    A trace is a part of a name that reveals a forbidden function. If a name has several traces, the
    longest trace decides: `log_softmax` isn't `softmax`.

    Args:
        names: the forbidden functions; by default all known functions.

    Attributes:
        traces: the forbidden function for each trace in lower case.
        folders: the folders of torch that contain only forbidden code, each with its forbidden
            function.

    Raises:
        KeyError: a name is unknown.
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


# Methods of a class that don't compute: creating or printing a module isn't a call of the module.
_MAKING = ("reset_parameters", "extra_repr", "_get_name", "from_", "merge_masks")


def forbidden_code(forbidden_names: ForbiddenNames, code: CodeType) -> str | None:
    """Return the forbidden function that this code of torch belongs to; None for other code.

    Of a class such as MultiheadAttention, only methods that compute are forbidden.
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
    """Return the forbidden functions of torch that are written in Python and already loaded.

    This takes a tenth of a second.
    """
    frozen = gc.get_freeze_count()
    gc.unfreeze()  # frozen objects would not be found
    found = tuple(
        thing
        for thing in gc.get_objects()
        if type(thing) is FunctionType and forbidden_code(forbidden_names, thing.__code__)
    )
    if frozen:
        gc.freeze()
    return found


def refuse(function: FunctionType, refusal: Callable[..., Any]) -> None:
    """Replace a function's code by a call of `refusal`, under all names of the function.

    Args:
        function: a function that is written in Python.
        refusal: raises an exception. It is called with the arguments of the function.
    """
    # Python requires the same number of free variables as before.
    function.__code__ = _refused.__code__.replace(co_freevars=function.__code__.co_freevars)
    function.__kwdefaults__ = {"refusal": refusal}


def _refused(*args: Any, refusal: Callable[..., Any], **kwargs: Any) -> Any:
    return refusal(*args, **kwargs)


_forbidden_names = functools.cache(ForbiddenNames)


def modules_of_torch() -> int:
    """Return how many modules of torch are loaded, as a key for caches of its functions."""
    return _modules_of_torch(len(sys.modules))


@functools.lru_cache(1)
def _modules_of_torch(modules: int) -> int:
    return sum(name.startswith("torch") for name in sys.modules)


@functools.lru_cache(8)
def _functions_by_now(
    names: tuple[str, ...], modules: int
) -> tuple[tuple[FunctionType, str | None], ...]:
    """Return torch's forbidden functions with their names, cached until more modules are loaded."""
    forbidden_names = _forbidden_names(names)
    found = functions_of_torch(forbidden_names)
    named = [(function, forbidden_code(forbidden_names, function.__code__)) for function in found]
    return tuple(
        (function, name)
        for function, name in named
        if name == "autograd" or not function.__code__.co_filename.startswith(_DECOMPOSITIONS)
    )


def _is_differentiating() -> bool:
    """Return whether autograd or a transform of torch.func is the caller."""
    level = torch._C._functorch.peek_interpreter_stack()
    if level is not None and level.key().name in ("Grad", "Jvp"):
        return True
    return torch._C._current_autograd_node() is not None


class Guard:
    """A context in which calls of the named functions raise ForbiddenCall and are recorded.

    Args:
        names: the forbidden functions, each a key of `_TRACES`.
        may_differentiate: returns whether the running code may use autograd even if autograd is
            forbidden. Tests need autograd to compute expected values.

    Attributes:
        called: the name of the first forbidden function that was called, or None. It stays set even
            if the student's code catches the exception.

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
        """Return the replacement of a function. It refuses the call or runs the original code."""
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
