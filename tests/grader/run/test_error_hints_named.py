"""Mistakes of beginners and their messages: names rest on numbers, and false ones do not return.

`error_hints.edits` contains them: solutions with an edit, as in a catalogue. The
number of the problem begins the name of each. Its first sentence is the expected message; its
second one is a false message of the past. A message of several sentences is joined by " | ".
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from grader.code.quiet import quiet
from grader.course import own_course
from grader.diagnose.edits import apply, parse
from grader.diagnose.evidence import ranked
from grader.diagnose.fingerprints import Fingerprints
from grader.diagnose.naming import diagnose
from grader.diagnose.probe import ask, load_probe
from grader.run.local_files import LocalFiles

COURSE = own_course()
PROBLEMS = {problem.id[:2]: problem for problem in COURSE.problems()}
SLIPS = {
    edit.name: edit
    for edit in parse(Path(__file__).with_name("error_hints.edits").read_text(encoding="utf-8"))
}
NOTHING = "nothing"


def output(number: str, path: Path) -> list[str]:
    """Return the message about a problem's file."""
    problem = PROBLEMS[number]
    probe = load_probe(problem)
    assert probe is not None
    with quiet(), torch.enable_grad():
        answers = ask(probe, LocalFiles(lambda _: path)(problem))
    known = Fingerprints.load(problem.fingerprints)
    return [each.sentence for each in ranked(diagnose(known, answers))]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=() if n < "06" else pytest.mark.slow) for n in SLIPS],
)
def test_what_is_right_is_said_and_nothing_else(name: str, tmp_path: Path) -> None:
    slip, number = SLIPS[name], name[:2]
    right = COURSE.solution(PROBLEMS[number]).read_text(encoding="utf-8")
    path = tmp_path / "problem.py"
    path.write_text(apply(slip, right), encoding="utf-8")
    found, wanted = output(number, path), slip.when.split(" | ")
    if wanted == [NOTHING]:
        wanted = []
    assert len(found) == len(wanted), found
    for text, says in zip(found, wanted, strict=True):
        assert says in text
        assert "Or as if" not in text
    assert not [never for never in slip.look.split(" | ") if never and never in "".join(found)]
