"""Answers of a probe are read safely, even if student code wrote them."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator, Mapping

import pytest
import torch

from grader.course import Problem, own_course
from grader.diagnose.answers import Answer, answer_of
from grader.diagnose.fingerprints import Fingerprints
from grader.diagnose.naming import diagnose, unnamed
from grader.diagnose.probe import Answers
from grader.run.encoding import BadRecord
from grader.run.orders import known_only, read_answers


def message(text: str) -> bytes:
    return json.dumps({"f": [{"a": text}, {}]}).encode()


@pytest.mark.parametrize(
    "answer",
    [
        answer_of(torch.tensor([[1e300, -2e-300], [math.inf, math.nan]], dtype=torch.float64)),
        answer_of(torch.full((4,), -1e308, dtype=torch.float64)),
        answer_of(torch.ones(2, 0, 3, dtype=torch.bfloat16)),
        answer_of(torch.ones(3, dtype=torch.bool)),
        answer_of(torch.ones(10, device="meta")),
        answer_of(True),
        answer_of(None),
        answer_of([1]),
        Answer(instead="Ungültig_1"),
    ],
)
def test_an_answer_is_read_unchanged(answer: Answer) -> None:
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
def test_invalid_answers_are_refused(forged: bytes) -> None:
    with pytest.raises(BadRecord):
        read_answers(forged)


def test_only_known_questions_count() -> None:
    one, two = answer_of(1.0), answer_of(2.0)
    reference = {"f": Answers({"a": one}, {"b": one})}
    found = {"f": Answers({"a": two, "more": two}, {"b": two, "told": two}), "told": reference["f"]}
    assert known_only(found, reference) == {"f": Answers({"a": two}, {"b": two})}
    assert known_only({}, reference) == {"f": Answers({}, {})}
    assert known_only({"f": Answers({"a": two}, {})}, reference) == {"f": Answers({"a": two}, {})}


FORGED = (
    "!Error",
    "!NotImplementedError",
    "!ForbiddenCall",
    "!returned-NoneType",
    "float32 scalar 0 1 2 3 4",
    "float64 2x3x4 0 nan inf -inf 0",
    "x 0x9999999999999999999 9999 nan nan nan nan",
)


@pytest.mark.parametrize("problem", own_course().problems(), ids=lambda problem: problem.id)
def test_odd_answers_do_not_stop_naming(problem: Problem) -> None:
    known = Fingerprints.load(problem.fingerprints)
    rng = random.Random(problem.id)
    odd = [Answer.read(text) for text in FORGED]

    def forged(right: Mapping[str, Answer], share: float) -> dict[str, Answer]:
        others = [
            answer for mistake in known.mistakes[:20] for answer in _answers(mistake.deviations)
        ]
        return {
            name: rng.choice([answer, *rng.sample(odd, 2), rng.choice(others)])
            for name, answer in right.items()
            if rng.random() < share
        }

    for share in (0, 0.5, 0.9, 1, 1, 1):
        answers = {
            part: Answers(forged(right.main, share), forged(right.edges, share))
            for part, right in known.reference.items()
        }
        found = diagnose(known, answers)
        unnamed(known, answers, found)


def _answers(deviations: Mapping[str, Answers]) -> Iterator[Answer]:
    for part in deviations.values():
        yield from part.main.values()
        yield from part.edges.values()
