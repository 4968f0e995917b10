"""What known faults answer to a problem's questions, as it is kept in `fingerprints.json`.

The file holds numbers and sentences, no code, so it can go to students.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grader.diagnose.answers import Answer, same
from grader.diagnose.probe import Answers
from grader.errors import CourseError
from grader.files import write_whole


@dataclass(frozen=True)
class Text:
    """What to tell a student about a fault.

    Attributes:
        when: ends the sentence "It looks as if ...".
        look: a nudge to what to look at; never the line of code.
    """

    when: str
    look: str = ""


@dataclass(frozen=True)
class Fault:
    """A known fault.

    Attributes:
        name: what it is called.
        deviations: by part, its answers that are not the reference's.
        rests_on: a hash over all that these depend on; empty where that isn't known.
        caught_by: id of a test that caught it when this was written, to be tried first.
    """

    name: str
    deviations: Mapping[str, Answers]
    rests_on: str = ""
    caught_by: str = ""

    def write(self) -> str:
        """Return it as one line of text."""
        names = [self.name] if self.name else []
        return _json([names, _written(self.deviations), self.rests_on, self.caught_by])


@dataclass(frozen=True)
class Fingerprints:
    """The answers of the reference and of all known faults of one problem.

    Attributes:
        reference: the right answers, by part.
        faults: what is known.
        texts: what to tell of each, by its name.
        right: of each variant that answered as the reference does, the hash over all that this
            depends on, by its name.
    """

    reference: Mapping[str, Answers] = field(default_factory=dict)
    faults: tuple[Fault, ...] = ()
    texts: Mapping[str, Text] = field(default_factory=dict)
    right: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path) -> Fingerprints:
        """Read `fingerprints.json`; a problem without one has no known faults.

        Raises:
            CourseError: it is damaged, as by a merge that nobody has finished.
        """
        if not path.is_file():
            return cls()
        try:
            return cls._of(json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise CourseError(
                f"{path} is damaged ({error}). Take it from git again, or write it anew: "
                f"grader author audit {path.parent.name[:2]} --write-fingerprints"
            ) from error

    @classmethod
    def _of(cls, data: Mapping[str, Any]) -> Fingerprints:
        faults = [Fault(name, _read(made), *more) for (name,), made, *more in data["faults"]]
        texts = {name: Text(*text) for name, text in data["texts"].items()}
        return cls(_read(data["reference"]), tuple(faults), texts, data.get("right", {}))

    def save(self, path: Path) -> None:
        """Write `fingerprints.json`, one sentence or one fault a line."""
        texts = [
            f"{_json(name)}: {_json([text.when, text.look])}" for name, text in self.texts.items()
        ]
        faults = [fault.write() for fault in self.faults]
        reference = [f"{_json(p)}: {_json(a)}" for p, a in _written(self.reference).items()]
        right = [f"{_json(name)}: {_json(rests_on)}" for name, rests_on in self.right.items()]
        write_whole(
            path,
            f'{{"reference": {{{_lines(reference)}}},\n'
            f'"texts": {{{_lines(texts)}}},\n'
            f'"right": {{{_lines(right)}}},\n'
            f'"faults": [{_lines(faults)}]}}\n',
        )


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _lines(entries: list[str]) -> str:
    return "\n " + ",\n ".join(entries) + "\n" if entries else ""


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


def with_deviations(
    reference: Mapping[str, Answers], wrong: Mapping[str, Answers]
) -> dict[str, Answers]:
    """Return the answers that have these deviations."""
    nothing = Answers({}, {})
    return {
        part: Answers({**right.main, **own.main}, {**right.edges, **own.edges})
        for part, right in reference.items()
        for own in [wrong.get(part, nothing)]
    }


def differs(answer: Answer, right: Answer | None, *, dtype: bool = True) -> bool:
    """Return whether an answer is not the right one; a question that has none tells nothing."""
    return right is not None and not same(answer, right, dtype=dtype)


def _written(answers: Mapping[str, Answers]) -> dict[str, dict[str, Any]]:
    return {part: _written_part(given) for part, given in answers.items()}


def _written_part(given: Answers) -> dict[str, Any]:
    kinds = {"main": given.main, "edges": given.edges}
    asked = {kind: {q: a.write() for q, a in answers.items()} for kind, answers in kinds.items()}
    return {kind: told for kind, told in asked.items() if told}


def _read(data: Mapping[str, Mapping[str, Any]]) -> dict[str, Answers]:
    def answers(texts: Mapping[str, str]) -> dict[str, Answer]:
        return {question: Answer.read(text) for question, text in texts.items()}

    return {
        part: Answers(answers(given.get("main", {})), answers(given.get("edges", {})))
        for part, given in data.items()
    }
