"""What known faults answer to a problem's questions, as it is kept in `fingerprints.json`.

The file holds numbers and sentences, no code, so it can go to students.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from grader.files import write_whole
from grader.testing.diagnosis.answers import Answer, same
from grader.testing.diagnosis.probe import Answers


@dataclass(frozen=True)
class Fault:
    """A known fault, or two at once.

    Attributes:
        names: the catalogued mistakes and switched faults that it is.
        text: what to tell the student: when one gets such an output, and what to look at.
        deviations: by part, its answers that are not the reference's.
        together: how many faults it is; one is likelier than two.
    """

    names: tuple[str, ...]
    text: str
    deviations: Mapping[str, Answers]
    together: int = 1


@dataclass(frozen=True)
class Fingerprints:
    """The answers of the reference, and of all known faults, of one problem."""

    reference: Mapping[str, Answers] = field(default_factory=dict)
    faults: tuple[Fault, ...] = ()

    @classmethod
    def load(cls, path: Path) -> Fingerprints:
        """Read `fingerprints.json`; a problem without one has no known faults."""
        if not path.is_file():
            return cls()
        data = json.loads(path.read_text(encoding="utf-8"))
        faults = [
            Fault(
                tuple(each["names"]), each["text"], _read(each["answers"]), each.get("together", 1)
            )
            for each in data["faults"]
        ]
        return cls(_read(data["reference"]), tuple(faults))

    def save(self, path: Path) -> None:
        """Write `fingerprints.json`, a line for each fault."""
        lines = [
            json.dumps(
                {"names": fault.names, "text": fault.text}
                | ({"together": fault.together} if fault.together > 1 else {})
                | {"answers": _written(fault.deviations)},
                ensure_ascii=False,
            )
            for fault in self.faults
        ]
        reference = json.dumps(_written(self.reference), ensure_ascii=False, indent=1)
        body = ",\n".join(lines)
        write_whole(path, f'{{"reference": {reference},\n"faults": [\n{body}\n]}}\n')


def deviations(
    answers: Mapping[str, Answers], reference: Mapping[str, Answers]
) -> dict[str, Answers]:
    """Return the answers that are not the reference's, by part; only of parts that have any."""
    found = {}
    for part, right in reference.items():
        given = answers.get(part, Answers({}, {}))
        main = {q: a for q, a in given.main.items() if differs(a, right.main.get(q), dtype=False)}
        edges = {q: a for q, a in given.edges.items() if differs(a, right.edges.get(q))}
        if main or edges:
            found[part] = Answers(main, edges)
    return found


def differs(answer: Answer, right: Answer | None, *, dtype: bool = True) -> bool:
    """Return whether an answer is not the right one; a question that has none tells nothing."""
    return right is not None and not same(answer, right, dtype=dtype)


def _written(answers: Mapping[str, Answers]) -> dict[str, dict[str, dict[str, str]]]:
    return {
        part: {
            kind: {question: answer.write() for question, answer in asked.items()}
            for kind, asked in (("main", given.main), ("edges", given.edges))
            if asked
        }
        for part, given in answers.items()
    }


def _read(data: Mapping[str, Mapping[str, Mapping[str, str]]]) -> dict[str, Answers]:
    def answers(texts: Mapping[str, str]) -> dict[str, Answer]:
        return {question: Answer.read(text) for question, text in texts.items()}

    return {
        part: Answers(answers(given.get("main", {})), answers(given.get("edges", {})))
        for part, given in data.items()
    }


def faults_of(
    found: Iterable[tuple[str, str, Mapping[str, Answers]]], reference: Mapping[str, Answers]
) -> tuple[Fault, ...]:
    """Return single faults, from their names, texts and answers."""
    return tuple(
        Fault((name,), text, deviations(answers, reference)) for name, text, answers in found
    )
