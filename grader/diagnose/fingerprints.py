"""Read and write `fingerprints.json`, the answers of known mistakes to a problem's questions.

The file contains numbers and sentences but no code, so students may receive it.
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
    """The text that a student receives about a mistake.

    Attributes:
        when: completes the sentence "It looks as if ...".
        nudge: a question that leads the student to the mistake; may be empty.
    """

    when: str
    nudge: str = ""


@dataclass(frozen=True)
class KnownMistake:
    """A known mistake and its wrong answers.

    Attributes:
        name: the name of the mistake.
        deviations: the answers that differ from the answers of the reference, by part.
        answers_hash: a hash of the questions, the mistake's code and the answers. If it changes,
            the answers are no longer valid. Empty if the hash is unknown.
        caught_by: the id of a test that catches the mistake; empty if no such test is known.
    """

    name: str
    deviations: Mapping[str, Answers]
    answers_hash: str = ""
    caught_by: str = ""

    def write(self) -> str:
        """Return the mistake as one line of JSON."""
        names = [self.name] if self.name else []
        return _json([names, _written(self.deviations), self.answers_hash, self.caught_by])


@dataclass(frozen=True)
class Fingerprints:
    """The answers of the reference and of all known mistakes of one problem.

    Attributes:
        reference: the right answers, by part.
        mistakes: the known mistakes.
        texts: the text about each mistake, by the mistake's name.
        right: the names and hashes of the variants whose answers are the same as the answers of
            the reference. A hash changes if the questions or the variant's code change.
    """

    reference: Mapping[str, Answers] = field(default_factory=dict)
    mistakes: tuple[KnownMistake, ...] = ()
    texts: Mapping[str, Text] = field(default_factory=dict)
    right: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path) -> Fingerprints:
        """Read `fingerprints.json`. A problem without this file has no known mistakes.

        Raises:
            CourseError: the file is damaged, for example by an unfinished merge.
        """
        if not path.is_file():
            return cls()
        try:
            return cls._of(json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise CourseError(
                f"{path} is damaged ({error}). Restore it from git, or write it again: "
                f"grader author audit {path.parent.name[:2]} --write-fingerprints"
            ) from error

    @classmethod
    def _of(cls, data: Mapping[str, Any]) -> Fingerprints:
        mistakes = [
            KnownMistake(name, _read(made), *more) for (name,), made, *more in data["mistakes"]
        ]
        texts = {name: Text(*text) for name, text in data["texts"].items()}
        return cls(_read(data["reference"]), tuple(mistakes), texts, data.get("right", {}))

    def save(self, path: Path) -> None:
        """Write `fingerprints.json` with one sentence or one mistake per line."""
        texts = [
            f"{_json(name)}: {_json([text.when, text.nudge])}" for name, text in self.texts.items()
        ]
        mistakes = [mistake.write() for mistake in self.mistakes]
        reference = [f"{_json(p)}: {_json(a)}" for p, a in _written(self.reference).items()]
        right = [
            f"{_json(name)}: {_json(answers_hash)}" for name, answers_hash in self.right.items()
        ]
        write_whole(
            path,
            f'{{"reference": {{{_lines(reference)}}},\n'
            f'"texts": {{{_lines(texts)}}},\n'
            f'"right": {{{_lines(right)}}},\n'
            f'"mistakes": [{_lines(mistakes)}]}}\n',
        )


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _lines(entries: list[str]) -> str:
    return "\n " + ",\n ".join(entries) + "\n" if entries else ""


def deviations(
    answers: Mapping[str, Answers], reference: Mapping[str, Answers]
) -> dict[str, Answers]:
    """Return the answers that differ from the answers of the reference, by part."""
    wrong = {}
    for part, right in reference.items():
        of_part = answers.get(part, Answers({}, {}))
        main = {q: a for q, a in of_part.main.items() if differs(a, right.main.get(q), dtype=False)}
        edges = {q: a for q, a in of_part.edges.items() if differs(a, right.edges.get(q))}
        if main or edges:
            wrong[part] = Answers(main, edges)
    return wrong


def with_deviations(
    reference: Mapping[str, Answers], wrong: Mapping[str, Answers]
) -> dict[str, Answers]:
    """Return a copy of `reference` in which the answers in `wrong` replace the right answers."""
    nothing = Answers({}, {})
    return {
        part: Answers({**right.main, **changed.main}, {**right.edges, **changed.edges})
        for part, right in reference.items()
        for changed in [wrong.get(part, nothing)]
    }


def differs(answer: Answer, right: Answer | None, *, dtype: bool = True) -> bool:
    """Return whether an answer is wrong. Return False if `right` is None."""
    return right is not None and not same(answer, right, dtype=dtype)


def _written(answers: Mapping[str, Answers]) -> dict[str, dict[str, Any]]:
    return {part: _written_part(of_part) for part, of_part in answers.items()}


def _written_part(answers: Answers) -> dict[str, Any]:
    kinds = {"main": answers.main, "edges": answers.edges}
    texts = {kind: {q: a.write() for q, a in of_kind.items()} for kind, of_kind in kinds.items()}
    return {kind: of_kind for kind, of_kind in texts.items() if of_kind}


def _read(data: Mapping[str, Mapping[str, Any]]) -> dict[str, Answers]:
    def read(texts: Mapping[str, str]) -> dict[str, Answer]:
        return {question: Answer.read(text) for question, text in texts.items()}

    return {
        part: Answers(read(texts.get("main", {})), read(texts.get("edges", {})))
        for part, texts in data.items()
    }
