"""The student's modules as tests hold them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from torch import nn

from grader.batch import Batched, Call, one_by_one
from grader.isolation.proxy.twin import Target, Twin

if TYPE_CHECKING:
    from grader.isolation.proxy.caller import Caller


_HOOKS = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")


class RemoteModule(nn.Module, Batched):
    """A module of the student's: its parameters and layers are here, its `forward` is remote.

    That goes for torch's own layers, too: which there are, and whether they work in place, is the
    student's choice. Such a layer is also an instance of torch's class.
    """

    _caller: Caller
    _twin: Twin
    _path: str
    _numbers: dict[str, Any]
    _root: nn.Module | None

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the student's `forward` in the worker, with this side's weights."""
        return self._caller.call(self._target(""), [Call(args, kwargs)])[0]

    def answers(self, calls: Sequence[Call], seeds: Sequence[int] | None = None) -> list[Any]:
        """Call the student's `forward` in the worker, with many calls in a message."""
        if any(getattr(self, name) for name in _HOOKS):
            return one_by_one(self, calls, seeds)
        return self._caller.call(self._target(""), calls, seeds)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name.startswith("__") or "_twin" not in self.__dict__:
                raise
        if name in self._numbers and self._twin.is_new():
            return self._numbers[name]
        return self._caller.attribute(self._target(name))

    def __setattr__(self, name: str, value: Any) -> None:
        settings = ("training", *getattr(type(self), "__constants__", ()))
        if name not in self._parameters and name not in self._buffers and name not in settings:
            raise TypeError(f"setting {type(self).__name__}.{name} from a test isn't supported")
        super().__setattr__(name, value)

    def _target(self, name: str) -> Target:
        root = self if self._root is None else self._root  # an empty ModuleList is false
        return Target(name, self._path, self._twin, root)
