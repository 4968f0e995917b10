"""Tells what tests that a student wrote are worth: what is right they accept, what is wrong not.

They run on files of the catalogue, one after the other in an order by chance, and are told nothing
of which file it is. Where and how they run is the caller's; here is which files, and what follows.
"""

from __future__ import annotations

import ast
import hashlib
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.course import REFERENCE, Course, Problem
from grader.diagnose.edits import Mistake, mistakes_of
from grader.diagnose.fingerprints import Fault, Fingerprints
from grader.errors import CourseError, UsageError
from grader.result import BreakResult, total
from grader.run.own_tests import MOST_BYTES, Ended, OwnTest, RefusedTests, Unusable
from grader.run.quote import Quote
from grader.run.repeats import repeated
from grader.run.sealed import PRACTICE, packed, unpacked

_WITHOUT_END = 3
"""After so many files on which the tests don't end, the others aren't tried."""

_MOST_TOLD = 3
"""Lines of the tests that are shown with what they refuse."""

_STYLE = "__"
_BY_FORBIDDEN_CALLS = "ForbiddenCall"

_REFERENCE = "the course's own."
_LESS_EXACT = "Less exact"
"""Stands in the docstring of a right solution that loses more digits than tests usually allow."""


class NoEnd(Exception):  # noqa: N818  (it says how a run went)
    """The tests did not come to an end on a file, or ended the process; the text says which."""


RunTests = Callable[[bytes, Sequence[str], Sequence[str]], list[OwnTest]]
"""Runs the student's tests on a file: without some of them, and others first, by their names.

It may stop at a test that fails. It may raise Unusable and NoEnd.
"""


@dataclass(frozen=True, eq=False)
class Target:
    """A file to test.

    Attributes:
        source: the file, without docstrings, comments and its name.
        family: for a wrong file, which mistake it makes, as a number; None for a right one.
        text: of a right file, how it is written; of a wrong one, what is wrong.
        name: what the catalogue calls it; empty where that isn't told.
        core: of a wrong file, whether its mistake is of the core.
        right: of a wrong file, the right one that it was made of; empty where that isn't told.
    """

    source: bytes
    family: int | None
    text: str
    right: bytes = b""
    name: str = ""
    core: bool = False

    @property
    def is_right(self) -> bool:
        """Whether good tests accept it."""
        return self.family is None


def targets(course: Course, problem: Problem) -> list[Target]:
    """Return the files that tests of a problem are judged by.

    Of the wrong ones those are left out that are of a family, of which one would have too many that
    are alike; and those whose only fault is a forbidden function: what they return is right, and a
    test can't tell. Of the right ones those that lose more digits than others, of which the audit
    makes sure that they say so.

    Args:
        course: where solutions are.
        problem: whose files.

    Raises:
        CourseError: there are none, as in the students' copy.
    """
    if not course.solution(problem).is_file():
        raise CourseError(f"there are no solutions of {problem.id} here to test")
    right = {n: p.read_text(encoding="utf-8") for n, p in course.right_files(problem).items()}
    known = Fingerprints.load(problem.fingerprints)
    mistakes = {m.edit.name: m for m in mistakes_of(course, problem) if not m.edit.family}
    faults = {fault.name: fault for fault in known.faults if _seen_in_answers(fault)}
    found = [
        Target(stripped(text), None, _style(name, text), name=name)
        for name, text in right.items()
        if not is_less_exact(text)
    ]
    for family, names in enumerate(_families(faults[name] for name in mistakes if name in faults)):
        core = any(mistakes[name].edit.core for name in names)
        found += [_wrong(mistakes[name], family, core) for name in names]
    return found


def _wrong(mistake: Mistake, family: int, core: bool) -> Target:
    edit = mistake.edit
    source, right = stripped(mistake.source), stripped(mistake.right)
    return Target(source, family, edit.when, right, edit.name, core)


def is_less_exact(source: str) -> bool:
    """Tell whether a right file says that it loses more digits than tests usually allow."""
    return _LESS_EXACT in _docstring(source)


def _seen_in_answers(fault: Fault) -> bool:
    parts = fault.deviations.values()
    found = [a for part in parts for a in (*part.main.values(), *part.edges.values())]
    return any(answer.instead != _BY_FORBIDDEN_CALLS for answer in found)


def _families(faults: Iterable[Fault]) -> list[list[str]]:
    """Return the names of mistakes that are one idea: written otherwise, or answering alike."""
    families: list[list[str]] = []
    known: dict[str, list[str]] = {}
    for fault in faults:
        keys = [fault.name.partition(_STYLE)[0], repr(sorted(fault.deviations.items(), key=str))]
        family = next((known[key] for key in keys if key in known), None)
        if family is None:
            families.append(family := [])
        family.append(fault.name)
        known |= dict.fromkeys(keys, family)
    return families


def stripped(source: str | bytes) -> bytes:
    """Return a file's code without what tells in words what it does."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node
        ):
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree).encode() + b"\n"


def _style(name: str, source: str) -> str:
    """Return in a few words how a right file is written."""
    of_file = " ".join(_docstring(source).partition("\n\n")[0].split())
    return _REFERENCE if name == REFERENCE else of_file


def _docstring(source: str) -> str:
    return ast.get_docstring(ast.parse(source)) or ""


# What students practise on


def sealed_file(problem: Problem) -> Path:
    """Return where in a students' copy the files are that tests can be tried on."""
    return problem.folder / PRACTICE


def seal(all_targets: list[Target]) -> bytes:
    """Return the core and half of the right files as one piece that nobody reads by accident.

    Where no core is chosen, it is every second mistake. It is packed, not encrypted: docs/break.md
    says what that means.
    """
    families = sorted({t.family for t in all_targets if t.family is not None})
    core = {target.family for target in all_targets if target.core}
    shown = core or {*families[::2]}
    right = [target for target in all_targets if target.is_right][1::2]  # never the reference
    wrong = [target for target in all_targets if target.family in shown]
    kept = [[t.source.decode(), t.family, t.text, t.name, t.core] for t in (*right, *wrong)]
    return packed(kept)


def opened(problem: Problem) -> list[Target]:
    """Return what a students' copy has to try tests on.

    Raises:
        UsageError: it has nothing.
    """
    try:
        kept = unpacked(sealed_file(problem))
    except FileNotFoundError:
        raise UsageError(
            f"This copy of the course has nothing to try tests of {problem.id} on. Your tests are "
            "judged when they are graded."
        ) from None
    return [
        Target(source.encode(), family, text, name=name, core=core)
        for source, family, text, name, core in kept
    ]


# What follows from how the tests end


def judge_own_tests(
    problem: Problem, tests: bytes, all_targets: list[Target], run: RunTests
) -> BreakResult:
    """RunTests a student's tests on targets and return how good they are.

    They run on all right files and on the core; then, if they earn all that the core is worth, on
    the other mistakes, among which are all right files once more. Where no core is chosen, all of
    that is one. Tests that repeat visible ones are left out; what caught most so far comes first.

    Args:
        problem: whose tests they are.
        tests: the file.
        all_targets: what to test.
        run: runs the tests on one file.
    """
    if len(tests) > MOST_BYTES:
        sha256 = hashlib.sha256(tests).hexdigest()
        return BreakResult(problem.id, sha256, reason=RefusedTests.TOO_LONG)
    judged = _Judged(tests, repeated(problem, tests))
    right = [target for target in all_targets if target.is_right]
    core = [target for target in all_targets if target.core]
    others = [target for target in all_targets if not (target.is_right or target.core)]
    try:
        if not core:
            judged.take_all([*right, *right, *others], run)
            return judged.result(problem, all_targets)
        judged.take_all([*right, *core], run)
        found = judged.result(problem, [*right, *core])
        if not (others and found.has_all_of_core):
            return found
        judged.take_all([*right, *others], run)
        return judged.result(problem, all_targets)
    except Unusable as reason:
        return BreakResult(problem.id, judged.sha256, reason=str(judged.quote.reason(reason)))
    except NoEnd as reason:
        return BreakResult(problem.id, judged.sha256, reason=str(reason))


class _Judged:
    """What the runs tell, one after the other."""

    def __init__(self, tests: bytes, repeats: list[str]) -> None:
        self.repeats = repeats
        self.sha256 = hashlib.sha256(tests).hexdigest()
        self.quote = Quote(tests)
        self._names: list[str] | None = None
        self._by_test: defaultdict[str, set[Target]] = defaultdict(set)
        self._refused: defaultdict[str, set[Target]] = defaultdict(set)
        self._without_end = 0

    def take_all(self, targets: list[Target], run: RunTests) -> None:
        """RunTests the tests on targets, as below.

        The order is not to be told beforehand: whoever knows which file comes when needs no test.
        For the same reason there are right ones whenever there are wrong ones.
        """
        for target in random.SystemRandom().sample(targets, len(targets)):
            self.take(target, run)

    def take(self, target: Target, run: RunTests) -> None:
        """RunTests the tests on a target, and keep what came of it.

        Raises:
            Unusable: they can't be run.
            NoEnd: they have not ended too often.
        """
        try:
            found = run(target.source, self.repeats, self._best_first())
        except NoEnd as reason:
            self._without_end += 1
            if self._without_end >= _WITHOUT_END:
                raise
            return self._note(target, str(reason))
        self._require_same([test.name for test in found])
        for test in found:
            name = self.quote.name(test.name)
            if test.ended is Ended.STOPPED:
                self._note(target, f"{name} ends the run, or is skipped.")
            elif test.ended is Ended.FAILED:
                self._note(target, f"{name} fails{self.quote.line(test.line)}.", name)
        return None

    def _best_first(self) -> list[str]:
        return sorted(self._by_test, key=lambda name: (-len(self._by_test[name]), name))

    def _require_same(self, names: list[str]) -> None:
        """Let names of tests tell nothing of what they run on: students read them."""
        if self._names is None:
            self._names = names
        if names != self._names:
            raise Unusable(RefusedTests.DIFFERS)

    def _note(self, target: Target, what: str, test: str = "") -> None:
        if target.is_right:
            self._refused[what].add(target)
        elif test:
            self._by_test[test].add(target)

    def result(self, problem: Problem, all_targets: list[Target]) -> BreakResult:
        """Return what it comes to."""
        right = [target for target in all_targets if target.is_right]
        caught = {target for found in self._by_test.values() for target in found}
        core, others = (
            _Caught([t for t in all_targets if not t.is_right and t.core is of_core], caught)
            for of_core in (True, False)
        )
        refused = {target for found in self._refused.values() for target in found}
        names = {self.quote.name(name) for name in self._names or []} - {*self.repeats}
        return BreakResult(
            problem.id,
            self.sha256,
            repeats=self.repeats,
            tests={name: len({t.family for t in self._by_test[name]}) for name in sorted(names)},
            right=len(right),
            refused=[target.name for target in right if target in refused],
            refusals=_refusals(self._refused, right),
            core=core.mistakes,
            core_caught=core.caught,
            core_missed={target.name: target.text for target in core.missed},
            mistakes=others.mistakes,
            caught=others.caught,
            full=problem.manifest.own_tests.full,
            missed=[target.name for target in others.missed],
            example=random.Random(self.sha256).choice(others.missed).text if others.missed else "",
        )


class _Caught:
    """How many of some mistakes are caught; one that stands there in several forms counts once."""

    def __init__(self, wrong: list[Target], caught: set[Target]) -> None:
        families: defaultdict[int | None, list[Target]] = defaultdict(list)
        for target in wrong:
            families[target.family].append(target)
        self.mistakes = len(families)
        self.caught = total(sum(t in caught for t in f) / len(f) for f in families.values())
        self.missed = [target for target in wrong if target not in caught]


def _refusals(refused: dict[str, set[Target]], right: list[Target]) -> list[str]:
    """Return sentences about what is refused: what holds most first, and not all of them."""
    every = sorted(refused.items(), key=lambda item: (-len(item[1]), item[0]))
    told = [_refusal(what, [t for t in right if t in found]) for what, found in every[:_MOST_TOLD]]
    if len(every) > _MOST_TOLD:
        told.append(f"So do {len(every) - _MOST_TOLD} other lines of yours; mend these first.")
    return told


def _refusal(what: str, found: list[Target]) -> str:
    several = f"On {len(found)} right solutions" if len(found) > 1 else "On a right solution"
    return f"{several} {what} Such a solution: {found[-1].text}"
