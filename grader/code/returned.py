"""Collect the results of calls."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

# Looked up before student code can replace them.
_address = torch._C.TensorBase.data_ptr
_writings = torch._C.TensorBase._version.__get__  # type: ignore[attr-defined]


class Results:
    """The results of calls, to detect a call that overwrites an earlier result."""

    def __init__(self) -> None:
        self.found: list[Any] = []
        self.some_overwritten = False
        self._versions: dict[int, int] = {}

    def add(self, result: Any) -> None:
        """Add the result of a call.

        A tensor counts the writes to its memory. Two results may share memory, such as parts of one
        cached mask, if there was no write between them.
        """
        self.found.append(result)
        if type(result) not in (Tensor, nn.Parameter):  # a subclass may return anything
            return
        try:
            place, written = _address(result), _writings(result)
        except Exception:  # it has no memory or no count of writes
            return
        if place and self._versions.setdefault(place, written) != written:
            self.some_overwritten = True
