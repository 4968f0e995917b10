"""What a request is about; and for each of the student's modules, what its worker knows of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn

from grader.isolation.connection import Connection
from grader.isolation.protocol import Header, Packed, ProtocolError
from grader.isolation.protocol.checks import items, member, name_in, texts
from grader.isolation.protocol.modules import parts_of, tensors_in
from grader.isolation.protocol.tensors import same
from grader.isolation.protocol.values import Unpacker
from grader.isolation.proxy.values import RequestPacker

if TYPE_CHECKING:
    from grader.isolation.proxy.handles import Handle

_Parts = list[tuple[str, nn.Module]]


class Twin:
    """The worker's module that a module here belongs to, and what the worker knows of its state.

    Args:
        connection: to the worker that holds it.
        number: what the worker calls it.
    """

    def __init__(self, connection: Connection, number: int) -> None:
        self.connection = connection
        self.number = number
        self._made_at = connection.asked
        self._buffers: dict[str, Tensor] = {}
        self._settings: dict[str, list[Any]] = {}
        self._names: set[str] = set()
        self._known: dict[str, _Known] = {}
        self._weights: list[tuple[str, int, Tensor]] = []
        self._sent: list[tuple[str, bool, int]] = []
        connection.keep(number, self)

    def is_new(self) -> bool:
        """Return whether the worker has been asked for nothing since it told of the module."""
        return not self.connection.dead and self.connection.asked == self._made_at

    def remember(self, root: nn.Module) -> None:
        """Take the buffers and settings of `root` for what the worker has."""
        parts = parts_of(root)
        tensors = [*tensors_in(parts)]
        self._buffers = {
            n: t.detach().clone() for n, t, is_parameter in tensors if not is_parameter
        }
        self._settings = {path: values for path, _, values in _settings(parts)}
        self._names = {name for name, _, is_parameter in tensors if is_parameter}

    def state(self, root: nn.Module | None, packer: RequestPacker) -> Packed:
        """Return what changed here since the worker was last told; give the packer the weights.

        Raises:
            TypeError: a weight isn't shared as it is in the worker.
        """
        assert root is not None
        self._weights, self._sent, tensors = [], [], []
        parts = parts_of(root)
        listed = [*tensors_in(parts)]
        self._check_names({name for name, _, is_parameter in listed if is_parameter})
        for name, tensor, is_parameter in listed:
            if is_parameter and tensor.requires_grad:
                packer.weights[name] = tensor
            if not (self._has_weight if is_parameter else self._has_buffer)(name, tensor):
                packed = packer.plain(tensor)
                tensors.append([name, packed, tensor.requires_grad])
                if is_parameter and "t" in packed:
                    self._sent.append((name, tensor.requires_grad, packed["t"]))
        return {"tensors": tensors, "settings": self._new_settings(parts, packer)}

    def _check_names(self, names: set[str]) -> None:
        for name in sorted(names ^ self._names):
            raise TypeError(f"sharing, parting or removing weights ({name}) isn't supported")

    def _has_weight(self, name: str, tensor: Tensor) -> bool:
        known = self._known.get(name)
        if known is None or not known.is_like(tensor):
            return False
        if not self.connection.holds(known.place, tensor):
            return False
        self._weights.append((name, known.place, tensor))
        return True

    def _has_buffer(self, name: str, tensor: Tensor) -> bool:
        known = self._buffers.get(name)
        if known is not None and same(tensor, known):
            return True
        self._buffers[name] = tensor.detach().clone()
        return False

    def _new_settings(self, parts: _Parts, packer: RequestPacker) -> list[Packed]:
        new = []
        for path, names, values in _settings(parts):
            if self._settings.get(path) != values:
                self._settings[path] = values
                training, *others = (packer.pack(value) for value in values)
                new.append([path, training, [*zip(names, others, strict=True)]])
        return new

    def placed(self, places: list[int], packer: RequestPacker) -> None:
        """Take note of where the weights lie that this request brings the worker."""
        for name, requires_grad, number in self._sent:
            place, tensor = places[number], packer.tensors[number]
            self._known[name] = _Known(place, tensor.dtype, tensor.shape, requires_grad)
            self._weights.append((name, place, tensor))

    def take(self, answer: Header, tensors: list[Tensor], root: nn.Module | None) -> list[str]:
        """Take over new buffers; return the names of the parameters that the call changed.

        That their numbers did is seen where they lie; that one was replaced, the worker says.
        """
        assert root is not None
        unpacker = Unpacker(tensors)
        for entry in items(answer["state"]["buffers"]):
            name, packed, persistent = items(entry, 3)
            path, _, last = texts([name])[0].rpartition(".")
            owner = root.get_submodule(path)
            if member(last) in owner._parameters or last in owner._modules:
                raise ProtocolError("a buffer has the name of something else")
            # The module gets another tensor; one that a test holds stays as it is.
            owner._buffers[last] = tensor = unpacker.unpack(packed)
            if not persistent:
                owner._non_persistent_buffers_set.add(last)
            self._buffers[name] = tensor.clone()
        replaced = [name_in(n, self._known) for n in texts(answer["state"]["parameters"])]
        for name in replaced:
            del self._known[name]  # the worker is told again
        holds = self.connection.holds
        return replaced + [n for n, place, tensor in self._weights if not holds(place, tensor)]


class _Known(NamedTuple):
    """A parameter as it lies before the worker."""

    place: int
    dtype: torch.dtype
    shape: torch.Size
    requires_grad: bool

    def is_like(self, tensor: Tensor) -> bool:
        """Return whether a parameter may have the same bytes."""
        return (
            tensor.dtype is self.dtype
            and tensor.shape == self.shape
            and tensor.requires_grad == self.requires_grad
            and tensor.is_contiguous()
            and not tensor.is_meta
        )


def _settings(parts: _Parts) -> Iterator[tuple[str, list[str], list[Any]]]:
    """Yield each module's path, the names of its settings, and their values after its mode's."""
    for path, module in parts:
        members = module.__dict__
        names = [n for n in getattr(type(module), "__constants__", ()) if n in members]
        yield path, names, [module.training, *(members[name] for name in names)]


class Target(NamedTuple):
    """What a request is about: something of the student's file, of a module's twin, of an object.

    Attributes:
        name: the function, method or attribute; empty for a module itself.
        path: the place of the module within its root.
        twin: what the worker knows of the root; None for a function of the file.
        root: the module that was made by a call.
        held: the object.
    """

    name: str
    path: str = ""
    twin: Twin | None = None
    root: nn.Module | None = None
    held: Handle | None = None

    @property
    def label(self) -> str:
        """What to call it in a message."""
        return self.name or self.path or type(self.root).__name__
