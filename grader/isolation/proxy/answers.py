"""Reads the values of an answer: tensors of this side's graph, modules, handles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from grader.isolation.connection import Connection
from grader.isolation.protocol import MAX_NUMBER, Header, ProtocolError
from grader.isolation.protocol.checks import identifier, index, items
from grader.isolation.protocol.values import Unpacker
from grader.isolation.proxy.autograd import Backward, connect
from grader.isolation.proxy.builder import Builder
from grader.isolation.proxy.handles import Handles
from grader.isolation.proxy.twin import Twin
from grader.isolation.proxy.values import AnswerUnpacker, RequestPacker, foreign

if TYPE_CHECKING:
    from grader.isolation.proxy.caller import Caller


class AnswerReader:
    """Reads one answer.

    Args:
        caller: calls what is read.
        connection: to the worker that answered.
        tensors: the answer's.
        packer: has written the request.
    """

    def __init__(
        self,
        caller: Caller,
        connection: Connection,
        tensors: list[Tensor],
        packer: RequestPacker,
    ) -> None:
        self._caller = caller
        self._connection = connection
        self._tensors = tensors
        self._packer = packer

    def values(self, answer: Header) -> list[Any]:
        """Return the values, connected to this side's autograd.

        Raises:
            ProtocolError: they are none.
        """
        graphs = [items(graph, 4) for graph in items(answer["graphs"])]
        outputs = self._outputs(graphs)
        handles = Handles(self._caller, self._connection)

        def special(packed: Header, unpacker: AnswerUnpacker) -> Any:
            if "out" in packed:
                return outputs[index(packed["out"], len(outputs))]
            if "o" in packed:
                return self._module(packed, unpacker)
            if "h" in packed:
                return handles.handle(packed)
            return foreign(identifier(packed["x"]))

        unpacker = AnswerUnpacker(self._tensors, special)
        told = items(answer["values"], len(self._packer.calls))
        values = [unpacker.unpack(value) for value in told]
        packed = [output for _, _, outputs, _ in graphs for output in outputs]
        for output, tensor in zip(packed, outputs, strict=True):
            if type(output) is dict and "r" in output:
                unpacker.numbered[output["r"]] = tensor
        self._keep_results(answer, unpacker)
        return values

    def _outputs(self, graphs: list[list[Any]]) -> list[Tensor]:
        """Return the tensors that the calls' graphs end in."""
        outputs: list[Tensor] = []
        packer = self._packer
        unpacker, last = AnswerUnpacker(self._tensors), -1
        for call, number, packed, foreseen in graphs:
            if index(call, len(packer.calls)) <= last:
                raise ProtocolError("a call has several graphs")
            last = call
            found = tuple(unpacker.unpack(output) for output in items(packed))
            asked = packer.calls[call]
            backward = Backward(self._caller, self._connection, index(number, MAX_NUMBER))
            if items(foreseen) and asked.upstream is not None:
                backward.foresee(asked.upstream, foreseen[0], self._tensors)
            outputs += connect(backward, found, [*asked.inputs, *packer.weights.values()])
        return outputs

    def _module(self, packed: Header, unpacker: AnswerUnpacker) -> nn.Module:
        twin = Twin(self._connection, index(packed["o"], MAX_NUMBER))
        builder = Builder(self._caller, twin, Unpacker(unpacker.tensors))
        module = builder.build(packed["module"])
        twin.remember(module)
        return module

    def _keep_results(self, answer: Header, unpacker: AnswerUnpacker) -> None:
        """Let the worker forget a result when no test holds it any more."""
        numbers = [index(number, MAX_NUMBER) for number in items(answer.get("results", []))]
        for place, number in enumerate(numbers):
            if place in unpacker.numbered:
                self._connection.keep(number, unpacker.numbered[place])
