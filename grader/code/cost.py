"""Count the cost of a call in numbers that are equal on every machine and for every torch.

    with counting() as cost:
        model(x)
    cost.operations, cost.elements, cost.largest

Three numbers, all of them integers:

- `operations`: floating point operations of matrix products, convolutions and attention, with the
  formulas of `torch.utils.flop_counter`: a product of (n, k) with (k, m) has 2 n k m. This module
  repeats them, as some versions of torch count nothing for attention on a CPU or for a product with
  a vector, and load a compiler with that module.
- `elements`: the entries of all results, and of arguments that an operator changes. So elementwise
  products count, too. Views have no entries, and clones are not counted: the number of copies that
  torch makes before a product depends on memory layout and on whether gradients are required.
- `largest`: the number of entries, not bytes, of the largest new tensor. Views don't count.

Equal mathematics counts equally. A composite operator counts as the operators that it consists of,
also under `torch.inference_mode`, where it would appear as a whole. Torch has several kernels for
`scaled_dot_product_attention`, so it always counts as softmax(q kᵀ) v written out: two products,
the scores, the weights, and the result.

Counted code may take another path through torch. So judge the values of a call outside of the
counter.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
    """The counts of one context.

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
        """Add the counts of an operator."""
        self.operations += operations
        self.elements += elements
        self.largest = max(self.largest, largest)

    def counts(self) -> bool:
        """Return whether operators are counted now."""
        return not self._paused

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Count nothing in this context."""
        self._paused += 1
        try:
            yield
        finally:
            self._paused -= 1


@contextmanager
def counting() -> Iterator[Cost]:
    """Count torch's operators in this context, including backward passes."""
    allow_causal_masks()
    cost, quick = Cost(), torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)  # a whole layer as one operator
    try:
        with _CountedOperators(cost), _CountedFunctions(cost):
            yield cost
    finally:
        torch.backends.mha.set_fastpath_enabled(quick)


class _CountedFunctions(TorchFunctionMode):
    """Counts attention before torch chooses a kernel for it."""

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
    # In torch.ops its name has a suffix for the overload.
    return str(getattr(func, "__name__", "")).partition(".")[0] == _ATTENTION


def _attention(
    result: Tensor, query: Tensor, key: Tensor, value: Tensor, *_: Any, **__: Any
) -> tuple[int, int, int]:
    """Return operations, elements and the largest tensor of softmax(q kᵀ) v."""
    scores = math.prod(result.shape[:-1]) * key.shape[-2]
    operations = 2 * scores * (key.shape[-1] + value.shape[-1])
    return operations, 2 * scores + result.numel(), max(scores, result.numel())


class _CountedOperators(TorchDispatchMode):
    """Counts the operators that run."""

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
    """Return whether torch composes an operator of others, and it has no formula."""
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
    except (NotImplementedError, RuntimeError):  # a sparse tensor has none
        return tensor


# Formulas. They take the operator's arguments, and `out_val`, its result.


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
    # Each of the two products has two gradients. The kernel also recomputes the scores, which
    # doesn't count.
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
