"""The student's modules as tests hold them, and for each what its worker knows of it.

A module's parameters, buffers and layers are here, so that a test can read and set them; its
`forward` is in the worker. Its twin keeps what the worker knows of that.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn

from grader.boundary.connection import Connection
from grader.boundary.frames import ProtocolError
from grader.boundary.protocol.codec import RequestPacker, ValueReader, same
from grader.boundary.protocol.layers import STOCK, parts_of, tensors_in
from grader.boundary.protocol.wire import (
    AnyValue,
    ModuleForm,
    ModuleState,
    Response,
    SomeTensor,
    TensorValue,
    identifier,
    named,
)
from grader.boundary.proxy.stand_ins import Subject
from grader.code.batch import Batched, Call, one_by_one

if TYPE_CHECKING:
    from grader.boundary.proxy.caller import Caller

_HOOKS = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")


class RemoteModule(nn.Module, Batched):
    """A module of the student's: its parameters and layers are here, its `forward` is remote.

    That goes for torch's own layers, too: which there are, and whether they work in place, is the
    student's choice. Such a layer is also an instance of torch's class.
    """

    _caller: Caller
    _twin: Twin
    _path: str
    _root: nn.Module | None

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the student's `forward` in the worker, with this side's weights."""
        return self._caller.call(self._subject(""), [Call(args, kwargs)])[0]

    def answers(self, calls: Sequence[Call], seeds: Sequence[int] | None = None) -> list[Any]:
        """Call the student's `forward` in the worker, with many calls in a message."""
        if any(getattr(self, name) for name in _HOOKS):
            return one_by_one(self, calls, seeds)
        return self._caller.call(self._subject(""), calls, seeds)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name.startswith("__") or "_twin" not in self.__dict__:
                raise
        return self._caller.attribute(self._subject(name))

    def __setattr__(self, name: str, value: Any) -> None:
        settings = ("training", *getattr(type(self), "__constants__", ()))
        if name not in self._parameters and name not in self._buffers and name not in settings:
            raise TypeError(f"setting {type(self).__name__}.{name} from a test isn't supported")
        super().__setattr__(name, value)

    def _subject(self, name: str) -> Subject:
        root = self if self._root is None else self._root  # an empty ModuleList is false
        return Subject(name, self._path, self._twin, root)


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
        self._buffers: dict[str, Tensor] = {}
        self._settings: dict[str, list[Any]] = {}
        self._names: set[str] = set()
        self._known: dict[str, _Placed] = {}
        self._weights: list[tuple[str, int, Tensor]] = []
        self._sent: list[tuple[str, bool, int]] = []
        connection.keep(number, self)

    def remember(self, root: nn.Module) -> None:
        """Take the buffers and settings of `root` for what the worker has."""
        parts = parts_of(root)
        tensors = [*tensors_in(parts)]
        self._buffers = {
            n: t.detach().clone() for n, t, is_parameter in tensors if not is_parameter
        }
        self._settings = {path: values for path, _, values in _settings(parts)}
        self._names = {name for name, _, is_parameter in tensors if is_parameter}

    def state(self, root: nn.Module | None, packer: RequestPacker) -> ModuleState:
        """Return what changed here since the last request; give the packer the weights.

        Raises:
            TypeError: a weight isn't shared as it is in the worker.
        """
        assert root is not None
        self._weights, self._sent = [], []
        tensors: list[tuple[str, SomeTensor, bool]] = []
        parts = parts_of(root)
        listed = [*tensors_in(parts)]
        self._check_names({name for name, _, is_parameter in listed if is_parameter})
        for name, tensor, is_parameter in listed:
            if is_parameter and tensor.requires_grad:
                packer.weights[name] = tensor
            if not (self._has_weight if is_parameter else self._has_buffer)(name, tensor):
                written = packer.plain(tensor)
                tensors.append((name, written, tensor.requires_grad))
                if is_parameter and type(written) is TensorValue:
                    self._sent.append((name, tensor.requires_grad, written.number))
        return ModuleState(tensors, self._new_settings(parts, packer))

    def _check_names(self, names: set[str]) -> None:
        for name in sorted(names ^ self._names):
            raise TypeError(f"sharing, parting or removing weights ({name}) isn't supported")

    def _has_weight(self, name: str, tensor: Tensor) -> bool:
        known = self._known.get(name)
        if known is None or not known.is_like(tensor):
            return False
        if not self.connection.memory.holds(known.place, tensor):
            return False
        self._weights.append((name, known.place, tensor))
        return True

    def _has_buffer(self, name: str, tensor: Tensor) -> bool:
        known = self._buffers.get(name)
        if known is not None and same(tensor, known):
            return True
        self._buffers[name] = tensor.detach().clone()
        return False

    def _new_settings(
        self, parts: _Parts, packer: RequestPacker
    ) -> list[tuple[str, bool, list[tuple[str, AnyValue]]]]:
        new = []
        for path, names, values in _settings(parts):
            before = self._settings.get(path, [None] * len(values))
            if before != values:
                self._settings[path] = values
                each = zip(names, values[1:], before[1:], strict=True)
                # What wasn't set here since the last request stays as the code left it.
                changed = [(name, packer.pack(value)) for name, value, was in each if value != was]
                new.append((path, bool(values[0]), changed))
        return new

    def placed(self, places: list[int], packer: RequestPacker) -> None:
        """Take note of where the weights lie that this request brings the worker."""
        for name, requires_grad, number in self._sent:
            place, tensor = places[number], packer.tensors[number]
            self._known[name] = _Placed(place, tensor.dtype, tensor.shape, requires_grad)
            self._weights.append((name, place, tensor))

    def take(self, response: Response, tensors: list[Tensor], root: nn.Module | None) -> list[str]:
        """Take over new buffers and modes; return the names of the parameters that it changed.

        That their entries did is seen where they lie; that one was replaced, the worker says.
        """
        assert root is not None
        if response.state is None:
            raise ProtocolError("nothing is said of the module")
        reader = ValueReader(tensors)
        for name, written, is_persistent in response.state.buffers:
            path, _, last = name.rpartition(".")
            owner = root.get_submodule(path)
            if last in owner._parameters or last in owner._modules:
                raise ProtocolError("a buffer has the name of something else")
            # The module gets another tensor; one that a test holds stays as it is.
            owner._buffers[last] = tensor = reader.plain(written)
            if not is_persistent:
                owner._non_persistent_buffers_set.add(last)
            self._buffers[name] = tensor.clone()
        for path, mode in response.state.modes:
            root.get_submodule(path).__dict__["training"] = self._settings[path][0] = mode
        replaced = [named(name, self._known) for name in response.state.replaced]
        for name in replaced:
            del self._known[name]  # the worker gets it again
        holds = self.connection.memory.holds
        return replaced + [n for n, place, tensor in self._weights if not holds(place, tensor)]


class _Placed(NamedTuple):
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


def build_module(
    caller: Caller, twin: Twin, described: ModuleForm, tensors: list[Tensor]
) -> nn.Module:
    """Return the module that a worker describes, with all that is in it, out of remote ones.

    Args:
        caller: calls what is built.
        twin: the worker's module.
        described: what it holds.
        tensors: the response's.

    Raises:
        ProtocolError: the description isn't one.
    """
    module = _Builder(caller, twin, ValueReader(tensors)).build(described)
    twin.remember(module)
    return module


class _Builder:
    def __init__(self, caller: Caller, twin: Twin, reader: ValueReader) -> None:
        self._caller = caller
        self._twin = twin
        self._reader = reader
        self._root: nn.Module | None = None
        self._parameters: dict[int, nn.Parameter] = {}

    def build(self, described: ModuleForm, path: str = "") -> nn.Module:
        module = self._empty(described, path)
        for name, written, requires_grad in described.parameters:
            module._parameters[name] = self._parameter(written, requires_grad)
        for name, written, is_persistent in described.buffers:
            module._buffers[name] = None if written is None else self._reader.plain(written)
            if not is_persistent:
                module._non_persistent_buffers_set.add(name)
        for name, child in described.children:
            inner = f"{path}.{name}" if path else name
            module._modules[name] = None if child is None else self.build(child, inner)
        return module

    def _empty(self, described: ModuleForm, path: str) -> nn.Module:
        cls = _remote_class(identifier(described.name), described.stock)
        module: nn.Module = cls.__new__(cls)
        nn.Module.__init__(module)  # that of a layer of torch's would make weights
        # Past RemoteModule.__setattr__, which guards against tests.
        about = {"_caller": self._caller, "_twin": self._twin, "_path": path, "_root": self._root}
        module.__dict__.update(about)
        module.__dict__["training"] = described.training
        self._root = module if self._root is None else self._root
        allowed = getattr(cls, "__constants__", ())
        for name, written in described.settings:
            module.__dict__[named(name, allowed)] = self._reader.read(written)
        return module

    def _parameter(self, written: SomeTensor, requires_grad: bool) -> nn.Parameter | None:
        if written is None:
            return None
        tensor = self._reader.plain(written)
        number = written.number if type(written) is TensorValue else -1 - len(self._parameters)
        if number not in self._parameters:
            self._parameters[number] = nn.Parameter(tensor, requires_grad)
        return self._parameters[number]


@functools.lru_cache(maxsize=256)
def _remote_class(name: str, stock: str | None) -> type[RemoteModule]:
    """Return a class of the student's name; made once, because making one takes long."""
    bases = () if stock is None else (STOCK[named(stock, STOCK)],)
    return type(name, (RemoteModule, *bases), {})
