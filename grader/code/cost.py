"""What a call costs, without a clock: the same numbers on every machine and for every torch.

    with counting() as cost:
        model(x)
    cost.operations, cost.elements, cost.largest

Three numbers, all of them integers:

- `operations`: floating point operations of products of matrices, of convolutions and of attention,
  by the formulas that `torch.utils.flop_counter` has too: a product of (n, k) with (k, m) has
  2 n k m. They stand here, since some versions of torch count nothing for attention on a CPU or for
  a product with a vector, and load a compiler with that module.
- `elements`: the entries of all results, of an operator that changes its argument those of the
  argument. So products entry by entry count, too. Views have no entries of their own, and those of
  a clone aren't counted again: how often torch copies before a product hangs on the order of the
  numbers in memory, and on whether gradients are wanted.
- `largest`: the entries of the largest tensor that was made. It is a number of entries, not of
  bytes, and new memory counts only, no views.

Equal mathematics counts equally. An operator that torch makes of others counts as those, also under
`torch.inference_mode`, where it would be seen as a whole. `scaled_dot_product_attention` is made in
one of several ways, as torch chooses, so it always counts as one who writes softmax(q kᵀ) v makes
it: two products, the scores, the weights, and the result.

What is counted may take another way through torch than it takes otherwise. So judge the numbers
that a call returns outside of the counter.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor

from grader.code.forbidden import allow_causal_masks

TorchFunctionMode = torch.overrides.TorchFunctionMode
TorchDispatchMode = torch.utils._python_dispatch.TorchDispatchMode

_ATTENTION = "scaled_dot_product_attention"
_COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd
_aten = torch.ops.aten
_FUSED = _aten._scaled_dot_product_flash_attention_for_cpu.default


class Cost:
    """What was counted.

    Attributes:
        operations: floating point operations.
        elements: entries of all results.
        largest: entries of the largest new tensor.
    """

    def __init__(self) -> None:
        self.operations = 0
        self.elements = 0
        self.largest = 0
        self._paused = 0

    def __repr__(self) -> str:
        numbers = f"operations={self.operations}, elements={self.elements}, largest={self.largest}"
        return f"Cost({numbers})"

    def add(self, operations: int, elements: int, largest: int) -> None:
        """Count what was counted elsewhere."""
        self.operations += operations
        self.elements += elements
        self.largest = max(self.largest, largest)

    def counts(self) -> bool:
        """Return whether what happens now is counted."""
        return not self._paused

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Count nothing in this context."""
        self._paused += 1
        try:
            yield
        finally:
            self._paused -= 1


_open: list[Cost] = []


@contextmanager
def counting() -> Iterator[Cost]:
    """Count what torch does in this context, backward passes included."""
    allow_causal_masks()
    cost, quick = Cost(), torch.backends.mha.get_fastpath_enabled()
    _open.append(cost)
    torch.backends.mha.set_fastpath_enabled(False)  # a whole layer as one operator
    try:
        with _CountedOperators(cost), _CountedFunctions(cost):
            yield cost
    finally:
        torch.backends.mha.set_fastpath_enabled(quick)
        _open.remove(cost)


def counters() -> list[Cost]:
    """Return what counts at this moment, the outermost first."""
    return [cost for cost in _open if cost.counts()]


@contextmanager
def elsewhere() -> Iterator[list[Cost]]:
    """Count nothing in this context; give what would count, to be told what another process did."""
    with ExitStack() as stack:
        found = counters()
        for cost in found:
            stack.enter_context(cost.paused())
        yield found


class _CountedFunctions(TorchFunctionMode):
    """Sees attention before torch chooses how to make it."""

    def __init__(self, cost: Cost) -> None:
        super().__init__()
        self._cost = cost

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if not self._cost.counts() or not _is_attention(func):
            return func(*args, **kwargs)
        with self._cost.paused():
            result = func(*args, **kwargs)
        self._cost.add(*_attention(result, *args, **kwargs))
        return result


def _is_attention(func: Any) -> bool:
    # torch.ops calls it by its name and a variant.
    return str(getattr(func, "__name__", "")).partition(".")[0] == _ATTENTION


def _attention(
    result: Tensor, query: Tensor, key: Tensor, value: Tensor, *_: Any, **__: Any
) -> tuple[int, int, int]:
    """Return operations, elements and the largest tensor of softmax(q kᵀ) v."""
    scores = math.prod(result.shape[:-1]) * key.shape[-2]
    operations = 2 * scores * (key.shape[-1] + value.shape[-1])
    return operations, 2 * scores + result.numel(), max(scores, result.numel())


class _CountedOperators(TorchDispatchMode):
    """Sees the operators that run."""

    supports_higher_order_operators = True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # nothing is compiled; without this, newer versions make each call slower

    def __init__(self, cost: Cost) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._cost = cost

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if not self._cost.counts() or not isinstance(func, torch._ops.OpOverload):
            return func(*args, **kwargs)
        if _is_composite(func):
            with self:
                return func._op_dk(_COMPOSITE, *args, **kwargs)
        result = func(*args, **kwargs)
        if func is _FUSED:
            self._cost.add(*_attention(result[0], *args, **kwargs))
            return result
        formula = _FORMULAS.get(func._overloadpacket)
        operations = formula(*args, **kwargs, out_val=result) if formula else 0
        self._cost.add(int(operations), *_made(func, args, kwargs, result))
        return result


@functools.cache
def _is_composite(func: Any) -> bool:
    """Return whether torch makes an operator of others, and has no formula for the whole."""
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    return func._overloadpacket not in _FORMULAS and has_kernel(func.name(), _COMPOSITE)


def _made(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> tuple[int, int]:
    """Return how many entries an operator has written, and those of its largest new tensor."""
    places = {_memory(tensor) for tensor in _tensors((args, [*kwargs.values()]))}
    new = [tensor.numel() for tensor in _tensors(result) if _memory(tensor) not in places]
    written = [
        tensor.numel()
        for place, name in _written(func)
        for tensor in _tensors(args[place] if place < len(args) else kwargs.get(name))
    ]
    copied = func is _aten.clone.default
    return 0 if copied else sum(new) + sum(written), max(new, default=0)


@functools.cache
def _written(func: Any) -> tuple[tuple[int, str], ...]:
    """Return number and name of the arguments that an operator writes to."""
    arguments = enumerate(func._schema.arguments)
    return tuple((i, a.name) for i, a in arguments if a.alias_info and a.alias_info.is_write)


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, list | tuple):
        return [tensor for item in value for tensor in _tensors(item)]
    return []


def _memory(tensor: Tensor) -> object:
    try:
        return tensor.untyped_storage()._cdata
    except (NotImplementedError, RuntimeError):  # a sparse tensor has none of its own
        return tensor


# Formulas. They take what an operator takes, and `out_val`, its result.


def _products(left: Tensor, right: Tensor, **_: Any) -> int:
    return 2 * left.numel() * right.shape[-1]


def _convolution(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    *_: Any,
    out_val: Tensor,
    **__: Any,
) -> int:
    places = x if transposed else out_val
    return 2 * places.numel() * math.prod(weight.shape[1:])


def _convolution_backward(upstream: Tensor, x: Tensor, weight: Tensor, *rest: Any, **_: Any) -> int:
    transposed, wanted = rest[4], rest[7]
    places = x if transposed else upstream
    return 2 * places.numel() * math.prod(weight.shape[1:]) * sum(map(int, wanted[:2]))


def _matrix_vector(matrix: Tensor, vector: Tensor, **_: Any) -> int:
    return 2 * matrix.numel()


def _added_matrix_vector(start: Tensor, matrix: Tensor, vector: Tensor, **_: Any) -> int:
    return 2 * matrix.numel()


def _dot(one: Tensor, other: Tensor, **_: Any) -> int:
    return 2 * one.numel()


def _added_products(start: Tensor, left: Tensor, right: Tensor, **_: Any) -> int:
    return 2 * left.numel() * right.shape[-1]


def _fused_attention_backward(
    upstream: Tensor, query: Tensor, key: Tensor, value: Tensor, *_: Any, **__: Any
) -> int:
    # Each of the two products has two gradients. That the scores are made once more is the
    # kernel's own choice.
    return 2 * _attention(upstream, query, key, value)[0]


_BY_NAME: dict[str, Callable[..., int]] = {
    "mm": _products,
    "bmm": _products,
    "addmm": _added_products,
    "baddbmm": _added_products,
    "convolution": _convolution,
    "convolution_backward": _convolution_backward,
    "mv": _matrix_vector,
    "addmv": _added_matrix_vector,
    "addmv_": _added_matrix_vector,
    "dot": _dot,
    "vdot": _dot,
    "addbmm": _added_products,
    "addbmm_": _added_products,
    "addmm_": _added_products,
    "baddbmm_": _added_products,
    "_addmm_activation": _added_products,
    "_scaled_dot_product_flash_attention_for_cpu_backward": _fused_attention_backward,
}

_FORMULAS: dict[Any, Callable[..., int]] = {
    getattr(_aten, name): formula for name, formula in _BY_NAME.items() if hasattr(_aten, name)
}
