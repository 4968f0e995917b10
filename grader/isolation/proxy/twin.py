"""What a request is about; and for each of the student's modules, what its worker knows of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from torch import Tensor, nn

from grader.isolation.connection import Connection
from grader.isolation.protocol import Header, Packed, ProtocolError
from grader.isolation.protocol.checks import items, member, name_in, texts
from grader.isolation.protocol.modules import parts_of, tensors_of
from grader.isolation.protocol.tensors import same
from grader.isolation.protocol.values import Unpacker
from grader.isolation.proxy.values import RequestPacker


class Twin:
    """The worker's module that a module here belongs to, and what the worker knows of its state.

    Args:
        connection: to the worker that holds it.
        number: what the worker calls it.
    """

    def __init__(self, connection: Connection, number: int) -> None:
        self.connection = connection
        self.number = number
        self._tensors: dict[str, tuple[Tensor, bool]] = {}
        self._settings: dict[str, list[Any]] = {}
        connection.keep(number, self)

    def remember(self, root: nn.Module) -> None:
        """Take the state of `root` for what the worker has."""
        self._tensors = {
            name: (tensor.detach().clone(), tensor.requires_grad)
            for name, tensor, _ in tensors_of(root)
        }
        self._settings = {path: values for path, _, values in _settings(root)}

    def state(self, root: nn.Module | None, packer: RequestPacker) -> Packed:
        """Return what changed here since the worker was last told; give the packer the weights."""
        assert root is not None
        tensors = []
        for name, tensor, is_parameter in tensors_of(root):
            if is_parameter and tensor.requires_grad:
                packer.weights[name] = tensor
            known = self._tensors.get(name)
            if known and same(tensor, known[0]) and tensor.requires_grad == known[1]:
                continue
            self._tensors[name] = tensor.detach().clone(), tensor.requires_grad
            tensors.append([name, packer.plain(tensor), tensor.requires_grad])
        settings = []
        for path, names, values in _settings(root):
            if self._settings.get(path) != values:
                self._settings[path] = values
                training, *others = (packer.pack(value) for value in values)
                settings.append([path, training, [*zip(names, others, strict=True)]])
        return {"tensors": tensors, "settings": settings}

    def take(self, answer: Header, tensors: list[Tensor], root: nn.Module | None) -> list[str]:
        """Take over new buffers; return the names of the parameters that the call changed."""
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
            self._tensors[name] = tensor.clone(), False
        changed = texts(answer["state"]["parameters"])
        return [name_in(name, self._tensors) for name in changed]


def _settings(root: nn.Module) -> Iterator[tuple[str, list[str], list[Any]]]:
    """Yield each module's path, the names of its settings, and their values after its mode's."""
    for path, module in parts_of(root):
        members = module.__dict__
        names = [n for n in getattr(type(module), "__constants__", ()) if n in members]
        yield path, names, [module.training, *(members[name] for name in names)]


class Target(NamedTuple):
    """What a request is about: a function of the student's file, or something of a module's twin.

    Attributes:
        name: the function, method or attribute; empty for a module itself.
        path: the place of the module within its root.
        twin: what the worker knows of the root; None for a function of the file.
        root: the module that was made by a call.
    """

    name: str
    path: str = ""
    twin: Twin | None = None
    root: nn.Module | None = None

    @property
    def label(self) -> str:
        """What to call it in a message."""
        return self.name or self.path or type(self.root).__name__
