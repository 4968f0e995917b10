"""What later requests may refer to: modules, objects, graphs, and results that shall not change."""

from __future__ import annotations

from itertools import islice
from typing import Any

from torch import Tensor, nn

from grader.isolation.protocol import Packed
from grader.isolation.protocol.tensors import same
from grader.isolation.worker.exceptions import class_name
from grader.isolation.worker.graphs import Graph
from grader.isolation.worker.handles import plain_fields
from grader.isolation.worker.objects import StudentModule, describe_module
from grader.isolation.worker.values import AnswerPacker

_RESULTS_WATCHED = 64


class Kept:
    """All that is kept, each by a number of its own.

    Attributes:
        modules: the student's modules that the trusted side knows.
        objects: other objects of the student's.
        graphs: those of calls.
    """

    def __init__(self) -> None:
        self.modules: dict[int, StudentModule] = {}
        self.objects: dict[int, object] = {}
        self.graphs: dict[int, Graph] = {}
        self._results: dict[int, tuple[Tensor, Tensor]] = {}
        kinds: tuple[dict[int, Any], ...]
        kinds = self.modules, self.objects, self.graphs, self._results
        self._kinds = kinds
        self._count = 0

    def forget_all(self) -> None:
        """Forget everything: another test begins."""
        for kind in self._kinds:
            kind.clear()

    def free(self, number: int) -> None:
        """Forget what has this number."""
        for kind in self._kinds:
            kind.pop(number, None)

    def keep(self, value: object, packer: AnswerPacker) -> Packed:
        """Keep a module or an object, and describe it."""
        number = self._number()
        if isinstance(value, nn.Module):
            described = describe_module(value, packer)
            self.modules[number] = StudentModule(value)
            return {"o": number, "module": described}
        packer.count_handle()
        self.objects[number] = value
        return {"h": number, "x": class_name(type(value)), "fields": plain_fields(value)}

    def keep_graphs(self, graphs: list[Graph], packer: AnswerPacker) -> list[Packed]:
        """Keep the graphs of calls, and tell of each that has outputs."""
        told, outputs = [], iter(packer.packed_outputs)
        for number, graph in enumerate(graphs):
            if graph.outputs:
                kept = self._number()
                self.graphs[kept] = graph
                told.append([number, kept, [*islice(outputs, len(graph.outputs))], []])
        return told

    def watch(self, result: Tensor, copy: Tensor) -> int:
        """Remember a result, to notice when a later call changes it; return its number."""
        while len(self._results) >= _RESULTS_WATCHED:
            del self._results[next(iter(self._results))]
        number = self._number()
        self._results[number] = result, copy
        return number

    def some_changed(self) -> bool:
        """Return whether earlier results changed; each is told once, for it was the last call's."""
        changed = [n for n, (result, copy) in self._results.items() if not _is_same(result, copy)]
        for number in changed:
            del self._results[number]
        return bool(changed)

    def _number(self) -> int:
        self._count += 1
        return self._count


def _is_same(result: Tensor, copy: Tensor) -> bool:
    try:
        return same(result, copy)
    except Exception:  # what the student's code has made of it can't be looked at
        return False
