"""The student's modules and objects that the trusted side knows: described, updated, watched."""

from __future__ import annotations

from collections.abc import Iterator
from types import MemberDescriptorType
from typing import Any

from torch import Tensor, nn

from grader.boundary.protocol.codec import (
    Packer,
    RequestReader,
    ResponsePacker,
    class_name,
    same,
)
from grader.boundary.protocol.layers import (
    STOCK,
    identity,
    parts_of,
    stock_name,
    tensors_in,
    tensors_of,
)
from grader.boundary.protocol.wire import (
    MAX_DEPTH,
    MAX_FIELDS,
    MAX_NAME,
    MAX_TEXT,
    MODULE,
    AnyValue,
    ChangedState,
    ModuleForm,
    ModuleState,
    SomeTensor,
    Unsendable,
)


class StudentModule:
    """A module of the student's that has a twin on the trusted side.

    Attributes:
        module: the module itself.
    """

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        self._known: dict[str, Tensor] = {}
        self._places: dict[str, int] = {}
        self._modes = {path: part.training for path, part in parts_of(module)}
        self._remember()

    def _remember(self) -> None:
        tensors = tensors_of(self.module)
        self._known = {n: t.detach().clone() for n, t, is_parameter in tensors if not is_parameter}

    def _parameters(self) -> dict[str, Tensor]:
        return {name: t for name, t, is_parameter in tensors_of(self.module) if is_parameter}

    def update(self, state: ModuleState, reader: RequestReader, weights: list[str]) -> list[Tensor]:
        """Take over what was changed on the trusted side; return the named parameters."""
        parameters = self._parameters() if state.tensors or weights else {}
        for name, written, requires_grad in state.tensors:
            tensor = reader.plain(written)
            if name in parameters:
                parameters[name].requires_grad_(False)
                parameters[name].data = tensor
                parameters[name].requires_grad_(requires_grad)
                self._places[name] = tensor.data_ptr()
            else:
                path, _, last = name.rpartition(".")
                self.module.get_submodule(path)._buffers[last] = tensor
                self._known[name] = tensor.clone()
        for path, training, settings in state.settings:
            module = self.module.get_submodule(path)
            module.training = self._modes[path] = training
            for name, value in settings:
                setattr(module, name, reader.read(value))
        return [parameters[name] for name in weights]

    def changes(self, packer: ResponsePacker) -> ChangedState:
        """Return the names of parameters that were replaced, and changed buffers and modes.

        Whether the entries of parameters were changed, the other side sees.
        """
        parts = parts_of(self.module)
        tensors, places, known = [*tensors_in(parts)], self._places, self._known
        replaced = [
            name
            for name, tensor, is_parameter in tensors
            if is_parameter and places.get(name, tensor.data_ptr()) != tensor.data_ptr()
        ]
        buffers = [
            (name, packer.plain(tensor), self._is_persistent(name))
            for name, tensor, is_parameter in tensors
            if not is_parameter and (name not in known or not same(tensor, known[name]))
        ]
        if buffers:  # they can be read
            self._remember()
        return ChangedState(replaced, buffers, self._changed_modes(parts))

    def _changed_modes(self, parts: list[tuple[str, nn.Module]]) -> list[tuple[str, bool]]:
        """Return the modes that the code has set; what was not there at first has none."""
        now = {path: part.training for path, part in parts if path in self._modes}
        changed = [(path, mode) for path, mode in now.items() if mode is not self._modes[path]]
        self._modes |= now
        return [(path, mode) for path, mode in changed if isinstance(mode, bool)]

    def _is_persistent(self, name: str) -> bool:
        path, _, last = name.rpartition(".")
        return last not in self.module.get_submodule(path)._non_persistent_buffers_set


def describe_module(module: nn.Module, packer: ResponsePacker) -> ModuleForm:
    """Return the tree of modules with their parameters, buffers and settings.

    Raises:
        Unsendable: it is too deep, or holds a tensor that can't be sent.
    """
    memo: dict[int, SomeTensor] = {}

    def tensor(value: Tensor | None) -> SomeTensor:
        # The same parameter under two names stays one parameter.
        key = identity(value)
        if key not in memo:
            memo[key] = packer.plain(value)
        return memo[key]

    def describe_one(module: nn.Module, depth: int) -> ModuleForm:
        if depth > MAX_DEPTH // 4:
            raise Unsendable("modules within modules, too deep")
        hidden, stock = module._non_persistent_buffers_set, stock_name(module)
        return ModuleForm(
            name=class_name(type(module)),
            stock=stock,
            training=_mode(module),
            settings=[] if stock is None else _settings(module, stock),
            parameters=[
                (name, tensor(p), p is not None and p.requires_grad)
                for name, p in module._parameters.items()
            ],
            buffers=[(n, tensor(b), n not in hidden) for n, b in module._buffers.items()],
            children=[
                (name, None if child is None else describe_one(child, depth + 1))
                for name, child in module._modules.items()
            ],
        )

    return describe_one(module, 0)


def _mode(module: nn.Module) -> bool:
    mode: object = module.training
    if not isinstance(mode, int):
        raise Unsendable("a module whose mode is neither True nor False")
    return bool(mode)


def _settings(module: nn.Module, stock: str) -> list[tuple[str, AnyValue]]:
    """Return what one of torch's own layers was made with."""
    packer = Packer()
    names = getattr(STOCK[stock], "__constants__", [])
    return [(name, packer.pack(getattr(module, name))) for name in names if hasattr(module, name)]


def is_students(value: object) -> bool:
    """Return whether a value is an object of a class that stands in the student's file."""
    return any(cls.__module__ == MODULE for cls in type(value).__mro__)


def plain_fields(value: object) -> list[tuple[str, Any]]:
    """Return name and value of an object's plain fields, the defaults of its class among them.

    None of the student's code is run for that, so a property is no field, nor is what is too long.
    """
    found: dict[str, Any] = {}
    for name, field in _members(value):
        if len(found) >= MAX_FIELDS:
            break
        if is_public(name):
            found.pop(name, None)
            try:
                found[name] = _packed(field)
            except Unsendable:
                continue
    return [*found.items()]


def _members(value: object) -> Iterator[tuple[Any, object]]:
    for cls in reversed(type(value).__mro__):
        if cls.__module__ == MODULE:
            for name, member in [*vars(cls).items()]:
                if isinstance(member, MemberDescriptorType):  # a slot
                    yield name, getattr(value, name, member)
                else:
                    yield name, member
    yield from [*getattr(value, "__dict__", {}).items()]


def is_public(name: object) -> bool:
    """Return whether a key of an object or a module is a name that a test could use."""
    if type(name) is not str or name.startswith("_"):  # through globals() it may be any key
        return False
    return len(name) <= MAX_NAME and name.isidentifier()


def _packed(field: object) -> AnyValue:
    if field is not None and not isinstance(field, int | float | str):
        raise Unsendable("a field that isn't plain")
    if isinstance(field, str) and len(field) > MAX_TEXT:
        raise Unsendable("a field that is too long")
    return Packer().pack(field)
