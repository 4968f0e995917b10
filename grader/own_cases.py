"""Reads out of a module of tests what pytest would: tests, their cases, fixtures and marks.

It is the part of pytest that tests on `problem` need: functions and methods of classes `Test...`,
`parametrize`, `skip`, `skipif`, `xfail`, `usefixtures`, and fixtures written in the same file.
"""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import ModuleType, TracebackType
from typing import Any, TypeVar

from grader.own_unusable import MOST_TESTS, Refused, Unusable

T = TypeVar("T")
Given = dict[str, Any]


@dataclass(frozen=True)
class Fixture:
    """A fixture of the file's own.

    Attributes:
        name: by which it is asked for.
        function: makes the value.
        method: the name under which a class has it; empty if it is the module's.
        autouse: whether each test has it.
    """

    name: str
    function: Callable[..., Any]
    method: str
    autouse: bool


@dataclass(frozen=True)
class Case:
    """A test, or one of its cases.

    Attributes:
        name: the function's.
        function: what is called; of a method, what the class has.
        owner: the class that it is a method of.
        given: arguments of this case.
        marks: pytest's marks on it.
        fixtures: those that it may ask for, by name.
        scope: the names of the file, for conditions that are written as text.
    """

    name: str
    function: Any
    owner: type | None
    given: Given
    marks: tuple[Any, ...]
    fixtures: Mapping[str, Fixture]
    scope: Mapping[str, Any] = field(repr=False)

    def is_skipped(self) -> bool:
        """Tell whether a mark says not to run it."""
        return any(
            mark.name == "skip" or (mark.name == "skipif" and self._holds(mark))
            for mark in self.marks
        )

    def may_fail(self, exception: BaseException) -> bool:
        """Tell whether a mark expects it to fail so."""
        return any(
            isinstance(exception, mark.kwargs.get("raises") or BaseException)
            for mark in self._expected()
        )

    def must_fail(self) -> bool:
        """Tell whether a mark says that it may not pass."""
        return any(mark.kwargs.get("strict") for mark in self._expected())

    def _expected(self) -> list[Any]:
        return [mark for mark in self.marks if mark.name == "xfail" and self._holds(mark)]

    def _holds(self, mark: Any) -> bool:
        conditions = mark.args or (mark.kwargs.get("condition", mark.name == "xfail"),)
        return any(
            eval(each, dict(self.scope)) if isinstance(each, str) else each for each in conditions
        )

    def asked(self) -> list[str]:
        """Return the names that it asks for, those of fixtures that each test has as well."""
        used = [name for mark in self.marks if mark.name == "usefixtures" for name in mark.args]
        every = [fixture.name for fixture in self.fixtures.values() if fixture.autouse]
        return [*every, *used, *_needed(self.function, self.owner is not None)]


class Setup:
    """Makes what a test asks for, and takes it down after the test.

    Args:
        case: the test.
        given: what there is already.
    """

    def __init__(self, case: Case, given: Given) -> None:
        self._case = case
        self._made = given | case.given
        self._stack = ExitStack()
        self._self = case.owner() if case.owner else None

    def __enter__(self) -> Callable[[], Any]:
        """Return the test with all of its arguments."""
        with self._stack as stack:
            values = {name: self._get(name) for name in self._case.asked()}
            self._stack = stack.pop_all()
        case = self._case
        bound = getattr(self._self, case.name) if case.owner else case.function
        values |= case.given | {"problem": self._made["problem"]}
        names = inspect.signature(bound).parameters
        return functools.partial(bound, **{n: v for n, v in values.items() if n in names})

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        steps: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, exception, steps)

    def _get(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def _make(self, name: str) -> Any:
        if name == "monkeypatch" and name not in self._case.fixtures:
            import pytest  # a worker for problems alone is without it

            return self._stack.enter_context(pytest.MonkeyPatch.context())
        fixture = self._case.fixtures[name]
        values = {each: self._get(each) for each in _asked_by(fixture)}
        function = fixture.function
        made = function(self._self, **values) if fixture.method else function(**values)
        if not inspect.isgenerator(made):
            return made
        self._stack.callback(next, made, None)
        return next(made)


def cases(module: ModuleType) -> list[Case]:
    """Return all tests of a module, each case by itself.

    Raises:
        Unusable: there is none, or one is not of the kind that is run here.
    """
    try:
        found = [*_first(_cases(module))]
    except Unusable:
        raise
    except Exception:
        raise Unusable(Refused.ODD) from None
    if not found:
        raise Unusable(Refused.NO_TEST)
    if len(found) > MOST_TESTS:
        raise Unusable(Refused.TOO_MANY)
    return found


_SETUPS = {f"{w}_{of}" for w in ("setup", "teardown") for of in ("module", "function")}
_SETUPS |= {f"{w}_{of}" for w in ("setup", "teardown") for of in ("class", "method")}


def _cases(module: ModuleType) -> Iterator[Case]:
    scope = dict(vars(module))
    fixtures = _fixtures(scope, in_class=False)
    yield from _cases_in(scope, None, _marks(module), fixtures, scope)
    for name, owner in scope.items():
        if not (inspect.isclass(owner) and owner.__module__ == module.__name__):
            continue
        if not (name.startswith("Test") or _of_unittest(owner)):
            continue
        if _of_unittest(owner) or owner.__init__ is not object.__init__:
            raise Unusable(Refused.NO_PLAIN_CLASS, name)
        members = {n: v for base in reversed(owner.__mro__[:-1]) for n, v in vars(base).items()}
        known = fixtures | _fixtures(members, in_class=True)
        yield from _cases_in(members, owner, [*_marks(module), *_marks(owner)], known, scope)


def _of_unittest(owner: type) -> bool:
    return any(base.__module__ == "unittest.case" for base in owner.__mro__[1:])


def _cases_in(
    members: Given,
    owner: type | None,
    marks: list[Any],
    fixtures: Mapping[str, Fixture],
    scope: Given,
) -> Iterator[Case]:
    for name, member in members.items():
        if name in _SETUPS and callable(member):
            raise Unusable(Refused.SETUP, name)
        function = member.__func__ if isinstance(member, staticmethod | classmethod) else member
        if not (name.startswith("test") and inspect.isfunction(function)):
            continue
        if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
            raise Unusable(Refused.NOT_PLAIN, name)
        own = [*marks, *_marks(function)]
        called = member if owner and isinstance(member, staticmethod) else function
        for given, more in _parametrized(name, own):
            case = Case(name, called, owner, given, (*own, *more), fixtures, scope)
            _require_known(case)
            yield case


def _marks(thing: Any) -> list[Any]:
    marks = getattr(thing, "pytestmark", [])
    return [*marks] if isinstance(marks, list | tuple) else [marks]


def _fixtures(members: Given, *, in_class: bool) -> dict[str, Fixture]:
    """Return fixtures by the names by which they are asked for."""
    found = {}
    for name, member in members.items():
        # Where pytest keeps what was said of a fixture: since 8.4, and before.
        marker: Any = getattr(member, "_fixture_function_marker", None)
        marker = marker or getattr(member, "_pytestfixturefunction", None)
        if type(marker).__name__ != "FixtureFunctionMarker":
            continue
        if marker.params is not None:
            raise Unusable(Refused.PARAMS, name)
        called = str(marker.name or name)
        function = member.__wrapped__
        found[called] = Fixture(called, function, name if in_class else "", bool(marker.autouse))
    return found


def _asked_by(fixture: Fixture) -> list[str]:
    return _needed(fixture.function, bool(fixture.method))


def _needed(function: Any, is_method: bool) -> list[str]:
    """Return what a function can't be called without, but for `self`."""
    if isinstance(function, staticmethod):
        function, is_method = function.__func__, False
    asked = [*inspect.signature(function).parameters.values()][is_method:]
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [p.name for p in asked if p.default is p.empty and p.kind not in variable]


def _require_known(case: Case) -> None:
    """Follow what a test asks for, fixture by fixture.

    Raises:
        Unusable: something of it is not known here.
    """
    asked, seen = [(case.name, name) for name in case.asked()], {"problem", *case.given}
    for by, name in asked:
        if name in seen:
            continue
        seen.add(name)
        if name in case.fixtures:
            asked += [(name, each) for each in _asked_by(case.fixtures[name])]
        elif name != "monkeypatch":
            raise Unusable(Refused.ASKS, by, name)


def _parametrized(name: str, marks: list[Any]) -> Iterator[tuple[Given, list[Any]]]:
    """Yield the arguments of each case of a test, and the marks on it.

    Raises:
        Unusable: values don't fit the names that they are for.
    """
    try:
        given = [
            [*_first(_values(*mark.args, **mark.kwargs))]
            for mark in marks
            if mark.name == "parametrize"
        ]
    except Exception:
        raise Unusable(Refused.CASES, name) from None
    for chosen in _first(itertools.product(*given)):
        arguments = {key: v for part, _ in chosen for key, v in part.items()}
        yield arguments, [mark for _, more in chosen for mark in more]


def _first(many: Iterable[T]) -> Iterator[T]:
    """Yield no more than tells that there are too many."""
    return itertools.islice(many, MOST_TESTS + 1)


def _values(argnames: Any, argvalues: Any, **_: Any) -> Iterator[tuple[Given, list[Any]]]:
    """Yield what each value of a mark gives to the arguments that it names, and its own marks."""
    names = argnames.split(",") if isinstance(argnames, str) else argnames
    names = [name.strip() for name in names if name.strip()]
    alone = isinstance(argnames, str) and len(names) == 1
    for value in argvalues:
        of_param: Any = getattr(value, "values", None)  # those of pytest.param
        is_param = isinstance(of_param, tuple)
        given: Any = of_param if is_param else (value,) if alone else value
        yield dict(zip(names, given, strict=True)), [*value.marks] if is_param else []
