"""What a module holds, listed alike on both sides; and the layers that both sides know by name."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor, nn

_STOCK = ("Linear", "Dropout", "LayerNorm", "Embedding", "Identity", "ReLU", "GELU", "Softmax")
STOCK: dict[str, type[nn.Module]] = {
    name: getattr(nn, name) for name in (*_STOCK, "ModuleList", "ModuleDict", "Sequential")
}
"""torch's own layers that the trusted side builds for itself, by name."""

identity = object.__hash__
"""Tells objects that live from each other, as `id` does, which Python's audit hooks are told of."""

_NAMES = {identity(layer): name for name, layer in STOCK.items()}


def stock_name(module: nn.Module) -> str | None:
    """Return the name in STOCK of the layer that a module is, or is derived from; or None."""
    names = (_NAMES.get(identity(cls)) for cls in type(module).__mro__)
    return next((name for name in names if name is not None), None)


def tensors_of(module: nn.Module) -> Iterator[tuple[str, Tensor, bool]]:
    """Yield name and tensor of a module's parameters and buffers, and whether it is a parameter.

    Each is listed once, by its first name, as `named_parameters` and `named_buffers` do, which take
    much longer; before each call both sides look for what was changed.
    """
    return tensors_in(parts_of(module))


def tensors_in(parts: list[tuple[str, nn.Module]]) -> Iterator[tuple[str, Tensor, bool]]:
    """Yield the same for a module's parts, as `parts_of` returns them."""
    seen: set[int] = set()
    for path, part in parts:
        start = f"{path}." if path else ""
        for members, is_parameter in ((part._parameters, True), (part._buffers, False)):
            for name, tensor in members.items():
                if tensor is not None and (key := identity(tensor)) not in seen:
                    seen.add(key)
                    yield start + name, tensor, is_parameter


def parts_of(module: nn.Module) -> list[tuple[str, nn.Module]]:
    """Return a module and those in it, each once and with its path, as `named_modules` does."""
    found, seen = [("", module)], {identity(module)}
    for path, part in found:  # which grows meanwhile
        for name, child in part._modules.items():
            if child is not None and (key := identity(child)) not in seen:
                seen.add(key)
                found.append((f"{path}.{name}" if path else name, child))
    return found
