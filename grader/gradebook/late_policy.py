"""The late policy in `late.toml`: how many points lateness costs. Without the file it costs none.

    per = "day"              # or "hour": each one that has begun counts
    share = 0.1              # of the points that were reached, for each
    grace = "15 minutes"     # this much later costs nothing
    floor = 0.5              # at least this share of the points is kept
    flagged = 0.2            # the share if a platform reports only that a file was late
    zone = "Europe/Berlin"   # the course's time zone

    [deadlines]
    03 = 2026-11-02T23:59:00

    [extensions]
    "canvas:1004" = "2 days"
    "Ada Lovelace" = { 03 = "1 week", 04 = 2026-11-16T12:00:00 }
    "*" = { 05 = "1 day" }   # everyone

`flagged` may differ by problem: `flagged = { 03 = 0, "*" = 0.2 }`.

Days and weeks are calendar days in the course's time zone: one day after Saturday 20:00 is Sunday
20:00, also when the clocks change. Hours and minutes are exact. The deduction is rounded to
hundredths of a point, and half of one in the student's favour.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import ROUND_HALF_DOWN, Decimal
from pathlib import Path
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

from grader.errors import UsageError
from grader.files import read_toml
from grader.gradebook.lines import number_of
from grader.result import Adjustment, ProblemResult, total
from grader.text import counted, is_between, quoted

FILE = "late.toml"

_LENGTH = re.compile(r"([0-9]{1,4}) *(minute|hour|day|week)s?")
_KEYS = {"per", "share", "grace", "floor", "flagged", "zone", "deadlines", "extensions"}
_PROBLEM = re.compile(r"[0-9]{1,2}(-[a-z0-9-]+)?")

_YEARS = range(1990, 2200)
"""The years in which something can be due or handed in."""

ALL = "*"
"""Every problem, or every person."""

Chosen = TypeVar("Chosen")


@dataclass(frozen=True)
class Length:
    """A length of time: calendar days, and exact time in addition."""

    days: int = 0
    exact: timedelta = timedelta()

    def after(self, start: datetime) -> datetime:
        """Return the moment this much later, with days as the zone of `start` counts them."""
        if not self.days:
            return start.astimezone(UTC) + self.exact
        return _last(start + timedelta(days=self.days)) + self.exact

    def times(self, number: int) -> Length:
        """Return this length so many times."""
        return Length(self.days * number, self.exact * number)


_UNITS = {
    "minute": Length(exact=timedelta(minutes=1)),
    "hour": Length(exact=timedelta(hours=1)),
    "day": Length(1),
    "week": Length(7),
}

Extension = Length | datetime
"""How much later than the deadline, or another deadline."""

Extensions = Mapping[str, Extension]
"""The extensions of a person by the number of the problem, or `*` for all."""


@dataclass(frozen=True)
class LatePolicy:
    """How many points lateness costs.

    Attributes:
        per: "day" or "hour".
        share: of the points, for each day or hour that has begun.
        grace: how much later costs nothing.
        floor: the share of the points that is kept in any case.
        flagged: by problem, the share if it is only known that a file was late.
        deadlines: by problem, each in the course's time zone.
        extensions: by person, or `*` for everyone.
    """

    per: str = "day"
    share: Decimal = Decimal(0)
    grace: Length = Length()
    floor: Decimal = Decimal(0)
    flagged: Mapping[str, Decimal] = field(default_factory=dict)
    deadlines: Mapping[str, datetime] = field(default_factory=dict)
    extensions: Mapping[str, Extensions] = field(default_factory=dict)

    def extended(self, own: Extensions) -> Extensions:
        """Return a person's extensions, with those of everyone where the person has none."""
        return own if ALL in own else {**self.extensions.get(ALL, {}), **own}

    def deduction(
        self, problem: ProblemResult, points: float, extended: Extensions
    ) -> Adjustment | None:
        """Return what lateness takes from a problem's points; None if it takes nothing.

        Args:
            problem: the graded problem, with the time at which it was submitted.
            points: the points without lateness.
            extended: the person's extensions.
        """
        times = self._times(problem, extended)
        if times is None:
            share = self._flagged_share(problem, extended)
            reason = f"Handed in late; {_percent(share)}"
        else:
            share = self.share * self._units(*times)
            late_by = _words(*_late_by(*times))
            reason = f"Late by {late_by}; {_percent(self.share)} for each {self.per} begun"
        taken = _taken(points, min(share, 1 - self.floor))
        return Adjustment(total([-taken]), reason) if taken else None

    def is_late(self, problem: ProblemResult, extended: Extensions) -> bool:
        """Return whether a problem was late, as far as that is known."""
        times = self._times(problem, extended)
        return problem.late if times is None else self._units(*times) > 0

    def is_unclear(self, problem: ProblemResult, extended: Extensions) -> bool:
        """Return whether a problem was late by an unknown time, and nothing is taken for it."""
        has_share = _of(self.flagged, problem.id) is not None
        settled = has_share and _of(extended, problem.id) is None
        return problem.late and not settled and self._times(problem, extended) is None

    def _flagged_share(self, problem: ProblemResult, extended: Extensions) -> Decimal:
        # A platform's flag ignores extensions that are given here.
        if not problem.late or _of(extended, problem.id) is not None:
            return Decimal(0)
        return _of(self.flagged, problem.id) or Decimal(0)

    def _units(self, due: datetime, came: datetime) -> int:
        """Return how many days or hours have begun between two moments, beyond the grace."""
        if came <= self.grace.after(due):
            return 0
        unit = _UNITS[self.per]
        number = max(0, (came - due) // timedelta(hours=unit.days * 24 or 1) - 1)
        while unit.times(number).after(due) < came:
            number += 1
        return number

    def _times(
        self, problem: ProblemResult, extended: Extensions
    ) -> tuple[datetime, datetime] | None:
        """Return when a problem was due and when it came; None if one of them is unknown."""
        due, came = _of(self.deadlines, problem.id), moment(problem.handed_in)
        extension = _of(extended, problem.id)
        if isinstance(extension, datetime):
            due = extension
        if due is None or came is None:
            return None
        if isinstance(extension, Length):
            due = extension.after(due).astimezone(due.tzinfo)
        return due, came.astimezone(UTC)


NO_POLICY = LatePolicy(flagged={ALL: Decimal(0)})
"""Lateness costs nothing."""


def moment(text: str) -> datetime | None:
    """Return the time in a result; None if it has none, none with a zone or a senseless one."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo and found.year in _YEARS else None


def _last(time: datetime) -> datetime:
    """Return the moment of a local time; the later one if the clocks show it twice or never."""
    return max(time.replace(fold=fold).astimezone(UTC) for fold in (0, 1))


def _of(by_problem: Mapping[str, Chosen], id: str) -> Chosen | None:
    """Return the entry of a problem, by its number, or the entry of all."""
    return by_problem.get(number_of(id), by_problem.get(ALL))


def _taken(points: float, share: Decimal) -> float:
    """Return a share of points in hundredths; half of one is rounded in the student's favour."""
    exact = Decimal(str(points)) * max(share, Decimal(0))
    return float(exact.quantize(Decimal("0.01"), ROUND_HALF_DOWN))


def _late_by(due: datetime, came: datetime) -> tuple[int, timedelta]:
    """Return the calendar days between two moments, and the exact time in addition."""
    days = max(0, (came - due) // timedelta(days=1) - 1)
    while Length(days + 1).after(due) <= came:
        days += 1
    return days, came - Length(days).after(due)


def _words(days: int, rest: timedelta) -> str:
    """Return a length of time in words, with each minute that has begun."""
    hours, minutes = divmod(-(-rest // timedelta(minutes=1)), 60)
    parts = [(days, "day"), (hours, "hour"), (minutes, "minute")]
    return " ".join(counted(number, unit) for number, unit in parts if number)


def _percent(share: Decimal) -> str:
    return f"{share * 100:.2f}".rstrip("0").rstrip(".") + " %"


# Reading


def read_late_policy(path: Path) -> LatePolicy | None:
    """Return the policy in a file; None if there is no such file.

    Raises:
        UsageError: the file cannot be read or understood.
    """
    if not path.exists():
        return None
    try:
        return _policy(read_toml(path, Decimal))
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}.") from None
    except ValueError as error:
        raise UsageError(f"{path} is not understood: {error}.") from None


def _policy(data: dict[str, Any]) -> LatePolicy:
    if unknown := sorted(data.keys() - _KEYS):
        raise ValueError(f"there is no {unknown[0]!r}; it may say {', '.join(sorted(_KEYS))}")
    if data.get("per", "day") not in ("day", "hour"):
        raise ValueError('\'per\' is "day" or "hour"')
    if not {"share", "flagged"} & data.keys():
        raise ValueError("it says neither 'share' nor 'flagged', so lateness would cost nothing")
    share = _share(data.get("share", 0), "share")
    if share and not _table(data, "deadlines"):
        raise ValueError("'share' needs the problems' deadlines, under [deadlines]")
    zone = _zone(data.get("zone"))
    return LatePolicy(
        data.get("per", "day"),
        share,
        _length(data.get("grace", "0 minutes"), "grace"),
        _share(data.get("floor", 0), "floor"),
        _flagged(data),
        {_problem(name): _deadline(at, zone) for name, at in _table(data, "deadlines").items()},
        {who: _extension(who, text, zone) for who, text in _table(data, "extensions").items()},
    )


def _flagged(data: dict[str, Any]) -> dict[str, Decimal]:
    given = data.get("flagged", {})
    by_problem = given if isinstance(given, dict) else {ALL: given}
    return {_problem(name): _share(share, "flagged") for name, share in by_problem.items()}


def _share(found: Any, name: str) -> Decimal:
    if not is_between(found, 0, 1):
        raise ValueError(f"{name!r} is a share from 0 to 1, such as 0.1")
    return Decimal(found)


def _length(text: Any, name: str) -> Length:
    match = _LENGTH.fullmatch(text) if isinstance(text, str) else None
    if not match:
        raise ValueError(f'{name!r} is a length such as "15 minutes" or "2 days"')
    return _UNITS[match[2]].times(int(match[1]))


def _zone(name: Any) -> tzinfo | None:
    try:
        return None if name is None else ZoneInfo(name)
    except (OSError, TypeError, ValueError, KeyError):
        raise ValueError(
            f"there is no zone {quoted(str(name))}; it is called such as Europe/Berlin"
        ) from None


def _table(data: dict[str, Any], name: str) -> dict[str, Any]:
    found = data.get(name, {})
    if not isinstance(found, dict):
        raise ValueError(f"{name!r} is a table, under [{name}]")
    return found


def _problem(name: str) -> str:
    if name == ALL:
        return name
    if not _PROBLEM.fullmatch(name):
        raise ValueError(f"{quoted(name)} is no problem; write its number, such as 03")
    return number_of(name)


def _deadline(at: Any, zone: tzinfo | None) -> datetime:
    if not isinstance(at, datetime) or at.year not in _YEARS:
        raise ValueError(f"{quoted(str(at))} is no deadline; write 2026-11-02T23:59:00")
    if at.tzinfo is not None:
        return at if zone is None else at.astimezone(zone)
    if zone is None:
        raise ValueError(f"the deadline {at} has no zone; say which under 'zone'")
    # In favour of the students, an hour that the clocks show twice is the second one.
    return _last(at.replace(tzinfo=zone)).astimezone(zone)


def _extension(who: str, given: Any, zone: tzinfo | None) -> Extensions:
    by_problem = given if isinstance(given, dict) else {ALL: given}
    return {
        _problem(name): _deadline(value, zone)
        if isinstance(value, datetime)
        else _length(value, f"the extension of {who}")
        for name, value in by_problem.items()
    }
