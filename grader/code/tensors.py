"""Common functions for tensors and arrays."""

from __future__ import annotations

from typing import Any, TypeGuard

import numpy
from torch import Tensor, nn

Array = numpy.ndarray[Any, Any]


def is_array(value: object) -> TypeGuard[Array]:
    """Return whether a value is a NumPy array, even if its class lies about itself."""
    return isinstance(value, numpy.ndarray) and issubclass(type(value), numpy.ndarray)


def dtype_name(values: Tensor | Array) -> str:
    """Return the name of a tensor's or an array's dtype, such as "float32"."""
    return str(values.dtype).removeprefix("torch.")


def is_float(values: Tensor | Array) -> bool:
    """Return whether the entries are floating point numbers."""
    if isinstance(values, numpy.ndarray):
        return bool(values.dtype.kind == "f")
    return bool(values.is_floating_point())


def parameters(module: nn.Module) -> dict[str, nn.Parameter]:
    """Return a module's parameters by name, including all names of a shared layer."""
    return dict(module.named_parameters(remove_duplicate=False))


def entries(values: Tensor | Array) -> Array:
    """Return the entries as a plain array, floats in float64. Treat it as read-only."""
    if isinstance(values, numpy.ndarray):
        plain = numpy.ndarray.view(values, numpy.ndarray)
        return numpy.ndarray.astype(plain, numpy.float64, copy=False) if is_float(plain) else plain
    tensor: Any = values.detach()
    found: Array = (tensor.double() if is_float(tensor) else tensor).numpy(force=True)
    return found
