"""Count the operations of a call. The counts are equal on all machines and for all torch versions.

    with counting() as cost:
        model(x)
    cost.operations, cost.elements, cost.largest

A composite operator counts as the operators that it consists of. For example, torch's attention
counts as two products and a softmax. This module does not use `torch.utils.flop_counter`, which
loads a compiler and does not count products with a vector.

Inside of `counting`, torch may compute a result with other operators, which cause other rounding
errors. Therefore tests compare values outside of it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from grader.code.forbidden import allow_causal_masks

TorchDispatchMode = torch.utils._python_dispatch.TorchDispatchMode

_COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd
_aten = torch.ops.aten


@dataclass
class Cost:
    """The cost of the operators that ran in one `with` block.

    Attributes:
        operations: the number of floating point operations in matrix products. A product of
            matrices of the shapes (n, k) and (k, m) has 2 n k m operations.
        elements: the number of entries of all results, and of arguments that an operator changes.
            Views do not count. Clones do not count either, because their number depends on memory
            layout and gradients.
        largest: the number of entries of the largest new tensor. Views do not count.
    """

    operations: int = 0
    elements: int = 0
    largest: int = 0


@contextmanager
def counting() -> Iterator[Cost]:
    """Count the cost of torch's operators in a `with` block, including backward passes."""
    allow_causal_masks()
    cost, fused = Cost(), torch.backends.cuda.flash_sdp_enabled()
    # Otherwise torch computes attention by one operator. This option also affects CPUs.
    torch.backends.cuda.enable_flash_sdp(False)
    try:
        with _CountedOperators(cost):
            yield cost
    finally:
        torch.backends.cuda.enable_flash_sdp(fused)


class _CountedOperators(TorchDispatchMode):
    supports_higher_order_operators = True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # otherwise newer versions of torch make each call slower

    def __init__(self, cost: Cost) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._cost = cost

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if not isinstance(func, torch._ops.OpOverload):
            return func(*args, **kwargs)
        if _is_composite(func):
            with self:
                return func._op_dk(_COMPOSITE, *args, **kwargs)
        result = func(*args, **kwargs)
        made, largest = _new_entries(func, args, kwargs, result)
        self._cost.operations += _operations(func, args)
        self._cost.elements += made
        self._cost.largest = max(self._cost.largest, largest)
        return result


_PRODUCTS = {"mm", "bmm", "mv", "dot", "vdot"}
_ADDED_PRODUCTS = {"addmm", "addbmm", "baddbmm", "addmv", "_addmm_activation"}
"""Operators that add a product to their first argument."""


def _operations(func: Any, args: tuple[Any, ...]) -> int:
    """Return the number of floating point operations of a product, or 0 for other operators."""
    name = func._overloadpacket.__name__.removesuffix("_")
    if name not in _PRODUCTS | _ADDED_PRODUCTS:
        return 0
    left, right = args[1:3] if name in _ADDED_PRODUCTS else args[:2]
    return int(2 * left.numel() * (right.shape[-1] if right.ndim > 1 else 1))


@functools.cache
def _is_composite(func: Any) -> bool:
    """Return whether torch implements an operator by calls of other operators."""
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), _COMPOSITE))


def _new_entries(
    func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
) -> tuple[int, int]:
    """Return the number of written entries, and the number of entries of the largest new tensor."""
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
    """Return the position and the name of each argument that an operator writes to."""
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
    except (NotImplementedError, RuntimeError):  # a sparse tensor has no storage
        return tensor
