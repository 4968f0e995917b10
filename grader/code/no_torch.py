"""What stands in PyTorch's place where it isn't installed: nothing of it, by the same names.

Grading a course in NumPy asks of torch whether a value is a tensor, whether gradients are wanted,
what the random state is. The answers are no, no, and none. Nothing is an instance of the classes
here, and whatever would make a tensor raises an ImportError. Messages hold arrays then.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ContextDecorator
from typing import Any

import numpy

_OF_TORCH_ALONE = [
    "bfloat16",
    "complex32",
    "float8_e4m3fn",
    "float8_e5m2",
    "qint8",
    "quint8",
    "qint32",
]
"""The dtypes that NumPy doesn't have."""

_SHARED = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
_SHARED += ["float16", "float32", "float64", "complex64", "complex128"]

_NO_STATE = numpy.zeros(1, dtype=numpy.uint8)


class Absent(type):
    """The type of whatever isn't there. What is looked up in such a thing isn't there, either."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__") or name in _OF_TORCH_ALONE:
            raise AttributeError(name)
        found = Absent(name, (), {})
        setattr(cls, name, found)  # a name means the same thing each time
        return found

    def __call__(cls, *_: object, **__: object) -> Any:
        """Make none of what isn't there."""
        raise ImportError(f"{cls.__name__} needs PyTorch, which isn't installed", name="torch")


class _Nothing(ContextDecorator):
    """A context, or a decorator, that changes nothing."""

    def __init__(self, *_: object) -> None:
        pass

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


def _ignored(*_: object) -> None:
    pass


def _always(value: Any) -> Callable[..., Any]:
    return staticmethod(lambda *_: value)


def _empty(shape: list[int], *, dtype: Any) -> Any:
    try:
        return numpy.empty(shape, dtype)
    except ValueError as error:  # torch says it so
        raise RuntimeError(*error.args) from None


class _Generator:
    """The random generator that isn't there: nothing moves its state."""

    manual_seed = set_state = staticmethod(_ignored)
    get_state = _always(_NO_STATE)


class torch(metaclass=Absent):  # noqa: N801  (it stands for a module)
    """The module."""

    __version__ = "none"
    __file__ = os.devnull  # no code is from beside it

    default_generator = _Generator
    get_rng_state = _Generator.get_state

    # Nothing learns, and nothing has a setting.
    enable_grad = no_grad = inference_mode = _Nothing
    is_grad_enabled = is_inference_mode_enabled = _always(False)
    get_default_dtype = _always(numpy.dtype("float32"))
    set_default_dtype = set_grad_enabled = set_num_threads = staticmethod(_ignored)

    # What holds the bytes of messages.
    empty = staticmethod(_empty)
    equal = staticmethod(numpy.array_equal)
    frombuffer = staticmethod(numpy.frombuffer)

    @staticmethod
    def from_numpy(array: Any) -> Any:
        """Return the array itself."""
        return array


def _address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


for _name in _SHARED:
    setattr(torch, _name, numpy.dtype(_name))
torch._C.TensorBase.data_ptr = staticmethod(_address)
torch._C.TensorBase._version = property()
torch.autograd.function.once_differentiable = staticmethod(lambda function: function)
torch._C._set_grad_enabled = staticmethod(_ignored)
