"""The result model; reports test its display."""

from __future__ import annotations

import pickle

from grader.result import Status, TestResult


def test_what_two_results_have_in_common_is_in_memory_once() -> None:
    """A run keeps hundreds of tests of each submission of a class."""
    result = TestResult("test_x[1]", "x is " + "right", False, 1.0, Status.FAILED, "expected 1")
    one, other = (pickle.loads(pickle.dumps(result)) for _ in range(2))
    assert one == other == result
    for name in ("id", "title", "message"):
        assert getattr(one, name) is getattr(other, name)
    assert not hasattr(one, "__dict__")
