"""The values that a request brings to the student's code, and those that an answer tells of it."""

from __future__ import annotations

from collections.abc import Callable
from operator import is_not
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from grader.isolation.protocol import MAX_HANDLES, MODULE, Header, Packed, Unsendable
from grader.isolation.protocol.tensors import form, in_order, lies_in_memory, own
from grader.isolation.protocol.values import Packer, Unpacker, lists_in
from grader.isolation.worker.exceptions import class_name
from grader.isolation.worker.handles import is_students

# Taken before a student's code can put anything else in their places.
_is_zeros = torch._C.TensorBase._is_zerotensor
_is_of_functorch = torch._C._functorch.is_functorch_wrapped_tensor
_OF_LAZY_LAYERS = nn.UninitializedParameter, nn.UninitializedBuffer


class GivenCall(NamedTuple):
    """A call that a request asks for.

    Attributes:
        args: its arguments.
        kwargs: those by name.
        leaves: the tensors among them that gradients are asked for.
        upstream: that of a gradient which may be asked for later.
    """

    args: list[Any]
    kwargs: dict[str, Any]
    leaves: list[Tensor]
    upstream: Tensor | None


class Request(Unpacker):
    """The values of one request.

    Args:
        tensors: those that it brings.
        held: the objects that it can name.
        names: what stands in the student's file.

    Attributes:
        tensors: those that it brings; they lie in memory that the other side sees.
        leaves: the tensors that gradients are asked for.
        generators: random generators among the arguments, and their states from before.
    """

    def __init__(
        self, tensors: list[Tensor], held: dict[int, object], names: dict[str, Any]
    ) -> None:
        super().__init__(tensors)
        self._held = held
        self._names = names
        self.leaves: list[Tensor] = []
        self.generators: list[tuple[torch.Generator, Tensor]] = []
        self._made: dict[int, torch.Generator] = {}
        self._given: list[tuple[Tensor, object]] = []
        self._lists: list[tuple[list[Any], list[Any]]] = []

    def call(self, args: list[Packed], kwargs: list[Packed], upstream: Packed) -> GivenCall:
        """Return what is to be called with what."""
        start = len(self.leaves)
        values = [self.unpack(value) for value in args]
        named = {name: self.unpack(value) for name, value in kwargs}
        lists = lists_in([*values, *named.values()])
        self._lists += [(each, [*list.__iter__(each)]) for each in lists]
        gradient = None if upstream is None else self.plain(upstream)
        return GivenCall(values, named, self.leaves[start:], gradient)

    def plain(self, packed: Packed) -> Tensor:
        """Return a tensor that is no argument."""
        return form(packed["m"]) if "m" in packed else self._sent(packed)

    def tensor(self, packed: Header) -> Tensor:
        """Return a tensor argument; in a graph if the sender's was in one."""
        tensor = self._sent(packed)
        if packed.get("grad"):
            leaf = tensor.requires_grad_() if packed["leaf"] else own(tensor).requires_grad_()
            self.leaves.append(leaf)
            if not packed["leaf"]:
                with torch.enable_grad():
                    apply: Callable[..., Tensor] = _Given.apply
                    tensor = apply(leaf, [tensor])
        self._given.append((tensor, _place(tensor)))
        return tensor

    def _sent(self, packed: Header) -> Tensor:
        tensor = super().tensor(packed)
        return own(tensor) if "order" in packed else tensor

    def moved_away(self) -> list[int]:
        """Return the numbers of the arguments that got another form or place, or learn now.

        Whether their numbers were, the other side sees.
        """
        return [i for i, (tensor, place) in enumerate(self._given) if _place(tensor) != place]

    def changed_lists(self) -> list[int]:
        """Return the numbers of the lists among the arguments that hold other things now."""
        return [
            number
            for number, (value, before) in enumerate(self._lists)
            if list.__len__(value) != len(before) or any(map(is_not, list.__iter__(value), before))
        ]

    def named(self, value: Any, packed: Header) -> Any:
        """Return a container as one of a class of the student's, where that is still to be had."""
        cls: Any = self._names.get(packed["as"])
        kind: Any = type(value)
        if not isinstance(cls, type) or not issubclass(cls, kind):
            return value
        if kind is tuple:
            return kind.__new__(cls, value)
        new = kind.__new__(cls)
        (kind.extend if kind is list else kind.update)(new, value)
        return new

    def special(self, packed: Header) -> Any:
        """Return an object that is kept here, or a generator in the sender's state."""
        if "h" in packed:
            return self._held[packed["h"]]
        if "g" not in packed:
            return super().special(packed)
        number = packed["g"]
        if number not in self._made:
            generator = self._made[number] = torch.Generator()
            generator.set_state(self.tensors[number])
            self.generators.append((generator, self.tensors[number]))
        return self._made[number]


class _Given(torch.autograd.Function):
    """Makes of an argument's memory a tensor of a graph that isn't its leaf."""

    @staticmethod
    def forward(ctx: Any, leaf: Tensor, given: list[Tensor]) -> Tensor:
        return given.pop()

    @staticmethod
    def backward(ctx: Any, *upstream: Any) -> Any:
        return *upstream, None


def _place(tensor: Tensor) -> object:
    return tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.requires_grad


def readable(tensor: Tensor) -> Tensor:
    """Return a tensor as a plain one, whatever subclass of Tensor it is of.

    Raises:
        Unsendable: its numbers can't be read; the text says what it is.
    """
    plain = tensor if type(tensor) is Tensor else _as_plain(tensor)
    if type(plain) is Tensor and not plain.is_nested:
        if plain.layout is not torch.strided or plain.is_meta or lies_in_memory(plain):
            return plain  # what isn't dense has a sentence of its own
        if _is_zeros(plain):
            return plain.clone()
    raise Unsendable(_oddity(tensor, plain))


def _as_plain(tensor: Tensor) -> Tensor | None:
    if isinstance(tensor, _OF_LAZY_LAYERS):
        return None
    try:
        return tensor.as_subclass(Tensor)
    except Exception:
        return None


def _oddity(tensor: Tensor, plain: Tensor | None) -> str:
    """Return what a tensor is that can't be read."""
    if plain is not None and plain.is_nested:
        return "a nested tensor"
    if _is_of_functorch(tensor):
        return "a tensor of torch.func that was kept for too long"
    of_class = "" if type(tensor) is Tensor else f" of the class {class_name(type(tensor))}"
    return f"a tensor{of_class} whose numbers can't be read"


class AnswerPacker(Packer):
    """Writes the student's values: tensors with their place in the graph, modules as descriptions.

    Args:
        keep: keeps what the trusted side will refer to, and describes it to this packer.

    Attributes:
        outputs: the tensors that a gradient can come back to.
        packed_outputs: what stands for them; among the values they are told by number.
        results: all tensors among the values, with the copies that are sent.
    """

    def __init__(self, keep: Callable[[object, AnswerPacker], Packed] | None = None) -> None:
        super().__init__()
        self.outputs: list[Tensor] = []
        self.packed_outputs: list[Packed] = []
        self.results: list[tuple[Tensor, Tensor]] = []
        self._keep = keep
        self._handles = 0

    def tensor(self, tensor: Tensor) -> Packed:
        """Add a tensor as a plain one, whatever subclass of Tensor it was."""
        with torch._C.DisableTorchFunctionSubclass():
            plain = readable(tensor)
            packed = super().tensor(plain)
            if "t" in packed:
                packed["r"] = len(self.results)
                copy = self.tensors[packed["t"]] = self.tensors[packed["t"]].clone()
                order = packed.get("order")
                self.results.append((plain, in_order(copy, order) if order else copy))
            if "m" in packed or not plain.requires_grad:
                return packed
            self.outputs.append(plain)
            self.packed_outputs.append(packed)
            return {"out": len(self.outputs) - 1}

    def plain(self, tensor: Tensor | None) -> Packed:
        """Add a parameter, a buffer or a gradient, which is no result of a call."""
        if tensor is None:
            return None
        with torch._C.DisableTorchFunctionSubclass():
            return super().tensor(readable(tensor).detach())

    def count_handle(self) -> None:
        """Take note of one more object that is kept.

        Raises:
            Unsendable: it is one too many.
        """
        self._handles += 1
        if self._handles > MAX_HANDLES:
            raise Unsendable("it has too many objects")

    def container(self, value: object, depth: int) -> Packed:
        """Return a container; one of a class of the student's with the class's name."""
        packed = super().container(value, depth)
        if isinstance(value, list | tuple | dict) and type(value).__module__ == MODULE:
            packed["as"] = class_name(type(value))
            if isinstance(value, tuple):
                packed["names"] = list(getattr(type(value), "_fields", ()))
        return packed

    def other(self, value: object) -> Packed:
        """Describe a module or an object of the student's; of all else name only the type."""
        if self._keep is not None and (isinstance(value, nn.Module) or is_students(value)):
            return self._keep(value, self)
        return {"x": class_name(type(value)), "method": callable(value)}
