"""If a beginner makes a mistake, the first failing test checks the broken rule.

`first_failure.edits` contains such mistakes. The name of a mistake begins with its problem's
number. The sentence of a mistake is the name of the test that checks the broken rule.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from grader.diagnose.edits import Edit, apply, parse
from grader.result import NOT_YET, ProblemResult
from tests.catalogue import reference

SLIPS = parse(Path(__file__).with_name("first_failure.edits").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "slip",
    [pytest.param(s, marks=() if s.name < "06" else pytest.mark.slow) for s in SLIPS],
    ids=lambda slip: slip.name,
)
def test_the_first_failed_test_is_about_the_mistake(
    at_home: Callable[..., ProblemResult], slip: Edit
) -> None:
    number = slip.name[:2]
    tests = at_home(number, apply(slip, reference(number)), hidden=False).tests
    failed = [test for test in tests if test.status != "passed"]
    assert failed[0].id.startswith(slip.when)
    judged = [test for test in failed if not test.message.startswith(NOT_YET)]
    assert judged[0] is failed[0]
    assert all(test.message.count(NOT_YET) == 1 for test in failed if test not in judged)
    if slip.name == "07_no_positions":  # the other tests need position embeddings
        assert {test.name for test in judged} == {"test_layers"}
