"""Reading the answers of a probe, which student code may have written."""

from __future__ import annotations

import json
import math

import pytest
import torch

from grader.diagnose.answers import Answer, answer_of
from grader.diagnose.probe import Answers
from grader.run.encoding import BadRecord
from grader.run.probing import known_only, read_answers


def message(text: str) -> bytes:
    return json.dumps({"f": [{"a": text}, {}]}).encode()


@pytest.mark.parametrize(
    "answer",
    [
        answer_of(torch.tensor([[1e300, -2e-300], [math.inf, math.nan]], dtype=torch.float64)),
        answer_of(torch.full((4,), -1e308, dtype=torch.float64)),
        answer_of(torch.ones(2, 0, 3, dtype=torch.bfloat16)),
        answer_of(True),
        answer_of(torch.ones(10, device="meta")),
        answer_of(None),
        Answer(instead="Ungültig_1"),
    ],
)
def test_an_answer_is_read_as_it_was_written(answer: Answer) -> None:
    assert read_answers(message(answer.write())) == {"f": Answers({"a": answer}, {})}


@pytest.mark.parametrize(
    "forged",
    [
        b"",
        b"[1, 2]",
        b"\xff",
        b"[" * 10**6,
        b"[" * 10**5,
        b'{"f": [{}, {}, {}]}',
        b'{"f": [{"a": 1}, {}]}',
        b" " * (1 << 20) + b"{}",
        message(""),
        message("!"),
        message("!two words"),
        message("!Error\n"),
        message("!" + "x" * 101),
        message("float32 1 0 1 2 3"),
        message("float32 1 0 1 2 3 x"),
        message("float32 1 0 1 2 3 4 5"),
        message("float32 1x 0 1 2 3 4"),
        message("float32 1 -1 1 2 3 4"),
        message("float 32 1 0 1 2 3 4"),
    ],
)
def test_what_is_no_answer_is_refused(forged: bytes) -> None:
    with pytest.raises(BadRecord):
        read_answers(forged)


def test_only_known_questions_count_and_all_of_them() -> None:
    one, two = answer_of(1.0), answer_of(2.0)
    reference = {"f": Answers({"a": one}, {"b": one})}
    found = {"f": Answers({"a": two, "more": two}, {"b": two, "told": two}), "told": reference["f"]}
    assert known_only(found, reference) == {"f": Answers({"a": two}, {"b": two})}
    for less in ({}, {"f": Answers({"a": two}, {})}, {"f": Answers({}, {"b": two})}):
        with pytest.raises(BadRecord):
            known_only(less, reference)
