"""A file with two mistakes gets a correct, nonempty message."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from grader.course import own_course
from grader.diagnose.edits import apply, mistakes_of
from grader.diagnose.fingerprints import Fingerprints
from grader.diagnose.naming import diagnose
from grader.diagnose.probe import ask, load_probe
from grader.run.local_files import LocalFiles


@pytest.mark.parametrize(
    ("number", "one", "other", "told"),
    [
        # The layers that exist, and the result computed with them.
        ("02", "weights_transposed", "made_bias_never", {"weights_transposed", "made_bias_never"}),
        (
            "02",
            "softmax_largest",
            "made_value_bias_always",
            {"softmax_largest", "made_value_bias_always"},
        ),
        # The dropouts that exist, and the heads.
        ("05", "rates_opposite", "heads_first_keys", {"rates_opposite", "heads_first_keys"}),
        (
            "05",
            "rates_no_resid",
            "heads_one_with_its_width",
            {"rates_no_resid", "heads_one_with_its_width"},
        ),
    ],
)
def test_what_one_part_alone_shows_is_told(
    number: str, one: str, other: str, told: set[str], tmp_path: Path
) -> None:
    course = own_course()
    (problem,) = course.select([number])
    mistakes = {mistake.edit.name: mistake for mistake in mistakes_of(course, problem)}
    first, second = mistakes[one].edit, mistakes[other].edit
    assert first.base == second.base
    both = replace(first, blocks=first.blocks + second.blocks)
    path = tmp_path / "problem.py"
    path.write_text(apply(both, mistakes[one].right))
    answers = ask(load_probe(problem), LocalFiles(lambda _: path)(problem))
    found = diagnose(Fingerprints.load(problem.fingerprints), answers)
    assert {name for each in found for name in each.names} == told
