"""The student's modules that the trusted side knows: described, brought up to date, watched."""

from __future__ import annotations

from torch import Tensor, nn

from grader.isolation.protocol import MAX_DEPTH, Header, Packed, Unsendable
from grader.isolation.protocol.modules import STOCK, identity, stock_name, tensors_of
from grader.isolation.protocol.tensors import same
from grader.isolation.protocol.values import Packer
from grader.isolation.worker.exceptions import class_name
from grader.isolation.worker.handles import numbers_of
from grader.isolation.worker.values import AnswerPacker, Request


class StudentModule:
    """A module of the student's that has a twin on the trusted side.

    Attributes:
        module: the module itself.
    """

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        self._known: dict[str, Tensor] = {}
        self._places: dict[str, int] = {}
        self._remember()

    def _remember(self) -> None:
        tensors = tensors_of(self.module)
        self._known = {n: t.detach().clone() for n, t, is_parameter in tensors if not is_parameter}

    def _parameters(self) -> dict[str, Tensor]:
        return {name: t for name, t, is_parameter in tensors_of(self.module) if is_parameter}

    def update(self, state: Header, request: Request, weights: list[str]) -> list[Tensor]:
        """Take over what was changed on the trusted side; return the named parameters."""
        parameters = self._parameters() if state["tensors"] or weights else {}
        for name, packed, requires_grad in state["tensors"]:
            tensor = request.plain(packed)
            if name in parameters:
                parameters[name].requires_grad_(False)
                parameters[name].data = tensor
                parameters[name].requires_grad_(requires_grad)
                self._places[name] = tensor.data_ptr()
            else:
                path, _, last = name.rpartition(".")
                self.module.get_submodule(path)._buffers[last] = tensor
                self._known[name] = tensor.clone()
        for path, training, settings in state["settings"]:
            module = self.module.get_submodule(path)
            module.training = training
            for name, packed in settings:
                setattr(module, name, request.unpack(packed))
        return [parameters[name] for name in weights]

    def changes(self, packer: AnswerPacker) -> Packed:
        """Return the names of parameters that were replaced, and the buffers that were changed.

        Whether the numbers of parameters were changed, the other side sees.
        """
        tensors, places, known = [*tensors_of(self.module)], self._places, self._known
        buffers = [
            (name, tensor)
            for name, tensor, is_parameter in tensors
            if not is_parameter and (name not in known or not same(tensor, known[name]))
        ]
        told = {
            "parameters": [
                name
                for name, tensor, is_parameter in tensors
                if is_parameter and places.get(name, tensor.data_ptr()) != tensor.data_ptr()
            ],
            "buffers": [
                [name, packer.plain(tensor), self._is_persistent(name)] for name, tensor in buffers
            ],
        }
        if buffers:  # they can be read
            self._remember()
        return told

    def _is_persistent(self, name: str) -> bool:
        path, _, last = name.rpartition(".")
        return last not in self.module.get_submodule(path)._non_persistent_buffers_set


def describe_module(module: nn.Module, packer: AnswerPacker) -> Packed:
    """Return the tree of modules with their parameters, buffers and settings.

    Raises:
        Unsendable: it is too deep, or holds a tensor that can't be sent.
    """
    memo: dict[int, Packed] = {}

    def tensor(value: Tensor | None) -> Packed:
        # The same parameter under two names stays one parameter.
        key = identity(value)
        if key not in memo:
            memo[key] = packer.plain(value)
        return memo[key]

    def describe_one(module: nn.Module, depth: int) -> Packed:
        if depth > MAX_DEPTH // 4:
            raise Unsendable("modules within modules, too deep")
        hidden, stock = module._non_persistent_buffers_set, stock_name(module)
        return {
            "class": class_name(type(module)),
            "stock": stock,
            "training": module.training,
            "settings": [] if stock is None else _settings(module, stock),
            "numbers": numbers_of(module) if stock is None else [],
            "parameters": [
                [name, tensor(p), p is not None and p.requires_grad]
                for name, p in module._parameters.items()
            ],
            "buffers": [[n, tensor(b), n not in hidden] for n, b in module._buffers.items()],
            "children": [
                [name, None if child is None else describe_one(child, depth + 1)]
                for name, child in module._modules.items()
            ],
        }

    return describe_one(module, 0)


def _settings(module: nn.Module, stock: str) -> Packed:
    """Return the numbers that one of torch's own layers was made with."""
    packer = Packer()
    names = getattr(STOCK[stock], "__constants__", [])
    return [[name, packer.pack(getattr(module, name))] for name in names if hasattr(module, name)]
