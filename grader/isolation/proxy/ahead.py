"""The first use of a module, asked for together with the module.

The worker's answer is kept with the twin. It serves if what a test asks then is, byte for byte,
what was foreseen; else the worker is asked as always. So nothing is believed that an answer to that
request would not be believed.
"""

from __future__ import annotations

import torch
from torch import Tensor

from grader.batch import Use
from grader.isolation.connection import Connection
from grader.isolation.protocol import MAX_NUMBER, Header, Packed, ProtocolError
from grader.isolation.protocol.checks import index, items
from grader.isolation.protocol.tensors import NAMES
from grader.isolation.proxy.modules import RemoteModule
from grader.isolation.proxy.values import RequestPacker

Answered = tuple[list[int], Header, list[Tensor]]


class Ahead:
    """A module's first use: what is foreseen of it, and what the worker answers.

    Args:
        use: what is foreseen.
        connection: to the worker that makes the module.

    Raises:
        Unsendable: that can't be sent.
    """

    def __init__(self, use: Use, connection: Connection) -> None:
        self._connection = connection
        self._packer = RequestPacker(connection)
        self._call = self._packer.call(use.as_call(), is_foreseen=True)
        self._count = len(self._packer.tensors)
        self._weights = [(name, self._packer.plain(weight)) for name, weight in use.weights.items()]
        self._training = use.training
        self._state = _state()
        self._forms = [(tensor.dtype, tensor.shape) for tensor in self._packer.tensors]
        self._places: list[int] = []
        self._answer: Header = {}
        self._found: list[Tensor] = []
        self._asked = 0

    @property
    def tensors(self) -> list[Tensor]:
        """What has to be put before the worker."""
        return self._packer.tensors

    def header(self, start: int) -> Header:
        """Return the part of a request that tells it; the first tensor's number is `start`."""
        told = {"weights": self._weights, "training": self._training, "calls": [self._call]}
        return told | {"start": start}

    def take(self, told: Packed, found: list[Tensor], places: list[int], module: object) -> None:
        """Keep an answer for when it is asked for.

        Args:
            told: what the worker says of the use; nothing if it was none for this module.
            found: the tensors of its answer.
            places: of the tensors that were put.
            module: what was made.

        Raises:
            ProtocolError: it can't be that.
        """
        if not items(told):
            return
        start, answer = items(told, 2)
        if type(answer) is not dict or not isinstance(module, RemoteModule):
            raise ProtocolError("the use of a module isn't one")
        self._found = found[index(start, len(found) + 1) :]
        self._answer, self._places, self._asked = answer, places, self._connection.asked
        known = {name: (packed["t"], places[packed["t"]]) for name, packed in self._weights}
        weights = {name: (place, *self._forms[number]) for name, (number, place) in known.items()}
        module._twin.use_ahead(self, module, weights, self._training)
        # Nobody needs this any more when it was no use that was asked for.
        for graph in items(answer.get("graphs", [])):
            self._connection.keep(index(items(graph, 4)[1], MAX_NUMBER), self)
        for number in items(answer.get("results", [])):
            self._connection.keep(index(number, MAX_NUMBER), self)

    def answered(self, header: Header, packer: RequestPacker) -> Answered | None:
        """Return the tensors' places, the answer and its tensors, if it is one to this request."""
        if self._connection.asked != self._asked or self._state != _state():
            return None
        if header["name"] or header["path"] or header["seeds"] or header["count"]:
            return None
        if header["state"] != {"tensors": [], "settings": []} or header["calls"] != [self._call]:
            return None
        places = self._places[: self._count]
        if [(tensor.dtype, tensor.shape) for tensor in packer.tensors] != self._forms[
            : self._count
        ]:
            return None
        if not all(map(self._connection.holds, places, packer.tensors)):
            return None
        return places, self._answer, self._found


def _state() -> object:
    return torch.is_grad_enabled(), NAMES[torch.get_default_dtype()]
