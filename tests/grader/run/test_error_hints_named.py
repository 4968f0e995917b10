"""Beginners' mistakes get the expected sentences, and no wrong sentence of an earlier version.

The file `error_hints.edits` contains the mistakes as edits of the references. A mistake's name
begins with the number of its problem. The first line that begins with "#" contains a part of the
expected sentence, or "nothing". The second contains a part of a sentence that an earlier version
wrongly showed. " | " separates parts of several sentences.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from grader.code.quiet import quiet
from grader.course import own_course
from grader.diagnose.edits import Edit, apply, parse
from grader.diagnose.evidence import ranked
from grader.diagnose.fingerprints import Fingerprints
from grader.diagnose.naming import diagnose
from grader.diagnose.probe import ask, load_probe
from grader.run.local_files import LocalFiles
from tests.catalogue import reference

PROBLEMS = {problem.id[:2]: problem for problem in own_course().problems()}
SLIPS = parse(Path(__file__).with_name("error_hints.edits").read_text(encoding="utf-8"))


def output(number: str, path: Path) -> list[str]:
    """Return the sentences about the mistakes in a student's file."""
    problem = PROBLEMS[number]
    probe = load_probe(problem)
    assert probe is not None
    with quiet(), torch.enable_grad():
        answers = ask(probe, LocalFiles(lambda _: path)(problem))
    known = Fingerprints.load(problem.fingerprints)
    return [each.sentence for each in ranked(diagnose(known, answers))]


@pytest.mark.slow
@pytest.mark.parametrize("slip", SLIPS, ids=lambda slip: slip.name)
def test_the_right_mistake_is_named_and_no_other(slip: Edit, tmp_path: Path) -> None:
    number, path = slip.name[:2], tmp_path / "problem.py"
    path.write_text(apply(slip, reference(number)), encoding="utf-8")
    sentences = output(number, path)
    expected = [] if slip.when == "nothing" else slip.when.split(" | ")
    assert len(sentences) == len(expected), sentences
    for text, part in zip(sentences, expected, strict=True):
        assert part in text
        assert "Or as if" not in text
    assert not [never for never in slip.nudge.split(" | ") if never and never in "".join(sentences)]
