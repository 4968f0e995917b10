"""The first test that fails stands for what is wrong, and its title accuses nothing right."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.course import own_course
from grader.result import NOT_YET
from grader.testing.local_files import LocalFiles
from grader.testing.session import Session
from grader.testing.suite import run_tests

COURSE = own_course()

NO_POSITIONS = {
    '                "wpe": nn.Embedding(config.n_positions, config.n_embd),\n': "",
    ' + self.transformer["wpe"](places)': "",
}
JOINED_HEADS = {
    f"{name} = torch.cat([past[{place}], {name}], dim=-2)": (
        f"{name} = torch.cat([past[{place}], {name}], dim=1)"
    )
    for place, name in enumerate("kv")
}

SLIPS = [
    ("04", {"self.mask[:T, :T]": "self.mask"}, "test_attention_in_numbers"),
    ("07", NO_POSITIONS, "test_layers[bias]"),
    ("07", {"        self.eval()\n": ""}, "test_generate_leaves_the_mode"),
    (
        "08",
        {"return drawn.reshape(logits.shape[:-1])": "return drawn.squeeze()"},
        "test_one_token_for_each_row",
    ),
    ("09", JOINED_HEADS, "test_one_token_in_numbers"),
]
"""A problem, what is replaced in its solution, and the test whose rule that breaks."""


@pytest.mark.parametrize(("number", "edits", "title"), SLIPS, ids=[slip[2] for slip in SLIPS])
def test_the_first_cross_is_at_what_is_wrong(
    number: str, edits: dict[str, str], title: str, tmp_path: Path
) -> None:
    (problem,) = COURSE.select([number])
    source = COURSE.solution(problem).read_text(encoding="utf-8")
    for right, wrong in edits.items():
        assert source.count(right) == 1
        source = source.replace(right, wrong)
    file = tmp_path / "problem.py"
    file.write_text(source, encoding="utf-8")
    session = Session(LocalFiles(lambda _: file), hidden=False, diagnose=False)
    run_tests([problem], session, COURSE.root)
    failed = [test for test in session.results[problem.id].tests if test.status != "passed"]
    assert failed[0].id.startswith(title)
    assert not failed[0].message.startswith(NOT_YET)
    if edits is NO_POSITIONS:  # nothing else can be judged without them, and no test says it can
        told = {test.id: test.message for test in failed if not test.message.startswith(NOT_YET)}
        assert {test.split("[")[0] for test in told} == {"test_layers"}, told
