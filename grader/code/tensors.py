"""What a course computes with: tensors and arrays, and what both have."""

from __future__ import annotations

from typing import Any, TypeGuard

import numpy
from torch import Tensor, nn

Array = numpy.ndarray[Any, Any]


def is_array(value: object) -> TypeGuard[Array]:
    """Tell whether a value is an array of NumPy's, as far as a student's object can be trusted."""
    return isinstance(value, numpy.ndarray) and issubclass(type(value), numpy.ndarray)


def dtype_name(values: Tensor | Array) -> str:
    """Return what a tensor's or an array's dtype is called, such as "float32"."""
    return str(values.dtype).removeprefix("torch.")


def is_float(values: Tensor | Array) -> bool:
    """Tell whether the entries are floating point numbers."""
    if isinstance(values, numpy.ndarray):
        return bool(values.dtype.kind == "f")
    return bool(values.is_floating_point())


def parameters(module: nn.Module) -> dict[str, nn.Parameter]:
    """Return a module's parameters by name; those of a layer with two names under both."""
    return dict(module.named_parameters(remove_duplicate=False))


def entries(values: Tensor | Array) -> Array:
    """Return the entries as a plain array, floats in float64; to look at, not to change."""
    if isinstance(values, numpy.ndarray):
        plain = numpy.ndarray.view(values, numpy.ndarray)
        return numpy.ndarray.astype(plain, numpy.float64, copy=False) if is_float(plain) else plain
    tensor: Any = values.detach()
    found: Array = (tensor.double() if is_float(tensor) else tensor).numpy(force=True)
    return found
