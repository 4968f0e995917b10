"""The tests of problem 05 recognize a loop over pairs of positions, even on a busy machine."""

from __future__ import annotations

import itertools
import types
from collections.abc import Callable, Iterator

import pytest

from grader.code.course_modules import modules_of_course
from grader.course import own_course

with modules_of_course(own_course().root):
    from shared import worked_example


def seconds_for_pairs(length: int) -> float:
    return 2e-6 * length**2


def seconds_for_positions(length: int) -> float:
    return 2e-5 * length


def constant_seconds(length: int) -> float:
    return 1e-3


@pytest.fixture
def has_loop(monkeypatch: pytest.MonkeyPatch) -> Callable[..., bool]:
    """Return a function that reports whether simulated code is recognized as a loop over pairs.

    A simulated clock measures the code.
    """
    now = 0.0
    clock = types.SimpleNamespace(perf_counter=lambda: now)
    monkeypatch.setattr("grader.run.calls.time", clock)

    def has_loop(cost: Callable[[int], float], delays: Iterator[float], delayed: int = 192) -> bool:
        def run(length: int) -> None:
            nonlocal now
            now += cost(length) + (next(delays, 0.0) if length == delayed else 0.0)

        return worked_example.loops_over_pairs(run)

    return has_loop


@pytest.mark.parametrize("delays", [(), (0.5, 0.2, 0.1, 0.09, 0.08)], ids=["idle", "busy"])
@pytest.mark.parametrize("cost", [constant_seconds, seconds_for_positions])
def test_waiting_for_a_processor_is_not_reported_as_a_loop(
    has_loop: Callable[..., bool],
    cost: Callable[[int], float],
    delays: tuple[float, ...],
) -> None:
    assert not has_loop(cost, iter(delays))


@pytest.mark.parametrize("delays", [(), (0.5, 0.0, 0.1)], ids=["idle", "busy"])
@pytest.mark.parametrize("slower", [1, 20])
def test_a_loop_over_pairs_is_recognized(
    has_loop: Callable[..., bool], slower: int, delays: tuple[float, ...]
) -> None:
    assert has_loop(lambda length: slower * seconds_for_pairs(length), iter(delays))


def test_a_loop_is_recognized_if_all_short_calls_are_delayed(has_loop: Callable[..., bool]) -> None:
    """The delays distort the time for 48 positions, so the times for 192 and 384 are compared."""
    assert has_loop(
        lambda length: 20 * seconds_for_pairs(length), itertools.repeat(0.15), delayed=48
    )
