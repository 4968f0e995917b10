"""The state of random generators: as a request brings it, and whether it moved since then."""

from __future__ import annotations

import torch
from torch import Tensor

from grader.isolation.protocol.memory import same_bytes
from grader.isolation.worker.values import Request

# Taken before a student's code can put anything else in their places.
_state = torch.default_generator.get_state
_set_state = torch.default_generator.set_state
_seed = torch.default_generator.manual_seed
_state_of = torch.Generator.get_state
_address = torch._C.TensorBase.data_ptr
_STATE_BYTES = _state().nbytes


def _equal(state: Tensor, before: Tensor) -> bool:
    return same_bytes(_address(state), _address(before), _STATE_BYTES)


class RandomState:
    """The global random state, which is that of the test when the student's code begins."""

    def __init__(self) -> None:
        self._given = self._before = _state()
        self._is_given = False  # whether that is still the state

    def restore(self, request: Request, number: int | None) -> None:
        """Set the state that a request asks for.

        Args:
            request: has its tensors.
            number: of the one with the state; None for that of the request before.
        """
        if number is not None:
            self._given = request.tensors[number].clone()
            self._is_given = False
        if not self._is_given:
            _set_state(self._given)
        self._before = self._given

    def seed(self, seed: int) -> None:
        """Seed the global generator, as the test would do just before a call."""
        _seed(seed)
        self._before = _state()

    def has_moved(self) -> bool:
        """Return whether anything was drawn since the last time that the state was set."""
        moved = not _equal(_state(), self._before)
        self._is_given = self._before is self._given and not moved
        return moved


def moved_generators(request: Request) -> list[bool]:
    """Return of each random generator among the arguments whether anything was drawn from it."""
    return [not _equal(_state_of(generator), before) for generator, before in request.generators]
