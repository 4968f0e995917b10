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


def steps_of_pairs(length: int) -> float:
    return 2e-6 * length**2


def steps_of_positions(length: int) -> float:
    return 2e-5 * length


def no_steps(length: int) -> float:
    return 1e-3


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> Callable[..., bool]:
    """Return a function that judges simulated code, with a clock that simulates the machine."""
    now = 0.0
    clock = types.SimpleNamespace(perf_counter=lambda: now)
    monkeypatch.setattr("grader.run.calls.time", clock)

    def judged(takes: Callable[[int], float], waits: Iterator[float], waiting: int = 192) -> bool:
        def run(length: int) -> None:
            nonlocal now
            now += takes(length) + (next(waits, 0.0) if length == waiting else 0.0)

        return worked_example.loops_over_pairs(run)

    return judged


@pytest.mark.parametrize("waits", [(), (0.5, 0.2, 0.1, 0.09, 0.08)], ids=["idle", "busy"])
@pytest.mark.parametrize("takes", [no_steps, steps_of_positions])
def test_waiting_for_a_processor_is_no_loop(
    judged: Callable[..., bool], takes: Callable[[int], float], waits: tuple[float, ...]
) -> None:
    assert not judged(takes, iter(waits))


@pytest.mark.parametrize("waits", [(), (0.5, 0.0, 0.1)], ids=["idle", "busy"])
@pytest.mark.parametrize("slower", [1, 20])
def test_a_loop_over_pairs_is_recognized(
    judged: Callable[..., bool], slower: int, waits: tuple[float, ...]
) -> None:
    assert judged(lambda length: slower * steps_of_pairs(length), iter(waits))


def test_a_loop_is_recognized_if_all_short_calls_waited(judged: Callable[..., bool]) -> None:
    """If short calls waited, the test must not request thousands of positions, as correct code
    would exceed the time limit.
    """
    assert judged(lambda length: 20 * steps_of_pairs(length), itertools.repeat(0.15), waiting=48)
