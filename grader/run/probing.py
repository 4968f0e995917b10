"""Run a problem's probe in a separate worker, and read the answers in the trusted process.

That worker has the probe and the modules that it imports, all of which students have. It has no
tests and no reference. No mark depends on its answers, and only names of types are kept of its
text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from grader.code.course_modules import modules_used
from grader.course import MANIFEST, Problem
from grader.diagnose.answers import Answer
from grader.diagnose.probe import Answers, answers_of, load_probe, owner
from grader.run.encoding import BadRecord
from grader.run.orders import data_of, report

_MOST_BYTES = 1 << 20

_NUMBER = r"-?(?:\d+(?:\.\d+)?(?:e[+-]\d{2,3})?|inf|nan)"
_VALUE = rf"\w{{1,20}} (?:scalar|\d{{1,19}}(?:x\d{{1,19}}){{0,63}}) \d{{1,4}}(?: {_NUMBER}){{4}}"
_INSTEAD = r"!(?:returned-)?[\w-]{1,100}"

_AnswerText = Annotated[str, Meta(max_length=2000, pattern=rf"\A(?:{_INSTEAD}|{_VALUE})\Z")]
"""An answer, as `Answer.write` writes it."""

_AnswerTexts = dict[str, _AnswerText]


# The trusted process


def files_of_probe(problem: Problem) -> dict[str, bytes]:
    """Return the files that a worker needs to run a problem's probe, without its tests.

    Returns:
        The files of a course with one problem, by their paths.
    """
    root, problems = problem.folder.parents[1], problem.folder.parent
    used = modules_used([problem.probe_file.read_bytes()], problems)
    packages = problems.glob("*/__init__.py")
    paths = {problem.probe_file, root / MANIFEST, *used, *data_of(problems), *packages}
    return {str(path.relative_to(root)): path.read_bytes() for path in paths}


def order(forbidden: tuple[str, ...]) -> bytes:
    """Return an order to probe the functions and classes that may not call these functions."""
    return msgspec.json.encode(forbidden)


def read_answers(message: bytes) -> dict[str, Answers]:
    """Read a message that student code may have written.

    Raises:
        BadRecord: the message is invalid or too large.
    """
    if len(message) > _MOST_BYTES:
        raise BadRecord("it is too large")
    try:
        found = msgspec.json.decode(message, type=dict[str, tuple[_AnswerTexts, _AnswerTexts]])
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise BadRecord("it cannot be read") from error
    return {part: Answers(_read(main), _read(edges)) for part, (main, edges) in found.items()}


def known_only(
    found: Mapping[str, Answers], reference: Mapping[str, Answers]
) -> dict[str, Answers]:
    """Return only the answers to questions that the reference answers."""
    nothing = Answers({}, {})
    return {
        part: Answers(
            {name: given.main[name] for name in right.main if name in given.main},
            {name: given.edges[name] for name in right.edges if name in given.edges},
        )
        for part, right in reference.items()
        for given in [found.get(part, nothing)]
    }


def _read(texts: Mapping[str, str]) -> dict[str, Answer]:
    return {name: Answer.read(text) for name, text in texts.items()}


# The worker


def load(folder: str) -> Callable[[bytes, Any], Iterator[bytes]]:
    """Load a probe from a folder, and return a function that runs it on a student's file."""
    (path,) = Path(folder).glob("problems/*/probe.py")
    problem = Problem(path.parent)
    probe, entry = load_probe(problem), problem.entry
    assert probe is not None

    def ask(order: bytes, loaded: Any) -> Iterator[bytes]:
        yield report(loaded)
        forbidden = tuple(msgspec.json.decode(order))
        try:
            found = answers_of(
                probe,
                loaded.module,
                lambda part: entry.forbidden_where({owner(part)}) == forbidden,
            )
            message = msgspec.json.encode({part: _written(each) for part, each in found.items()})
        except BaseException:  # raised by student code
            message = b"{}"
        yield message

    return ask


def _written(answers: Answers) -> list[dict[str, str]]:
    return [{q: a.write() for q, a in each.items()} for each in (answers.main, answers.edges)]
