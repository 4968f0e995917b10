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
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import ROUND_HALF_DOWN, Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar
from zoneinfo import ZoneInfo

import msgspec
from msgspec import Meta, Struct

from grader.errors import UsageError
from grader.files import read_toml
from grader.gradebook.lines import EVERYBODY, number_of
from grader.result import Adjustment, ProblemResult, total
from grader.text import quoted

FILE = "late.toml"

ALL = "*"
"""Every problem."""

_LENGTH = r"([0-9]{1,4}) *(minute|hour|day|week)s?"
_YEARS = range(1990, 2200)
"""The years in which something can be due or handed in."""

_Share = Annotated[float, Meta(ge=0, le=1)]
_LengthText = Annotated[str, Meta(pattern=f"^{_LENGTH}$")]
_ProblemKey = Annotated[str, Meta(pattern=r"^([0-9]{1,2}(-[a-z0-9-]+)?|[*])$")]

_FORMS = {
    "per": '"day" or "hour"',
    "share": "a share from 0 to 1, such as 0.1",
    "floor": "a share from 0 to 1, such as 0.5",
    "flagged": "a share from 0 to 1, such as 0.2, or one for each problem, such as { 03 = 0.2 }",
    "grace": 'a length such as "15 minutes" or "2 days"',
    "zone": 'the name of a zone, such as "Europe/Berlin"',
    "deadlines": "a table, under [deadlines], of lines such as 03 = 2026-11-02T23:59:00",
    "extensions": 'a table, under [extensions], of lines such as "Ada Lovelace" = "2 days"',
}
"""What each key may say."""

Chosen = TypeVar("Chosen")


@dataclass(frozen=True)
class Length:
    """A length of time: calendar days, and exact time in addition."""

    days: int = 0
    exact: timedelta = timedelta()

    def after(self, start: datetime) -> datetime:
        """Return the moment this much later. Days are calendar days in the zone of `start`."""
        if not self.days:
            return start.astimezone(UTC) + self.exact
        return _last(start + timedelta(days=self.days)) + self.exact

    def times(self, number: int) -> Length:
        """Return a multiple of this length."""
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
"""The extensions of a person by problem, or `*` for all."""


class LatePolicy(Struct, frozen=True, forbid_unknown_fields=True):
    """How many points lateness costs: the content of the file.

    Attributes:
        per: the unit of time.
        share: of the points, for each unit that has begun.
        grace: how much later costs nothing.
        floor: the share of the points that is kept in any case.
        flagged: the share if it is only known that a file was late, for all or by problem.
        zone: the course's time zone.
        deadlines: by problem.
        extensions: by person, or `*` for everyone.
    """

    per: Literal["day", "hour"] = "day"
    share: _Share = 0.0
    grace: _LengthText = "0 minutes"
    floor: _Share = 0.0
    flagged: _Share | dict[_ProblemKey, _Share] | None = None
    zone: tzinfo | None = None
    deadlines: dict[_ProblemKey, datetime] = {}
    extensions: dict[str, Any] = {}

    def __post_init__(self) -> None:
        """Check the relations between keys."""
        if not self.share and self.flagged is None:
            raise ValueError("it has neither 'share' nor 'flagged', so lateness would cost nothing")
        if self.share and not self.deadlines:
            raise ValueError("'share' needs the problems' deadlines, under [deadlines]")
        _ = [
            *map(self._in_zone, self.deadlines.values()),
            *map(self.extensions_of, self.extensions),
        ]

    def extensions_of(self, person: str) -> Extensions:
        """Return the extensions of a person, as the file writes the name.

        Raises:
            ValueError: one is invalid.
        """
        of_person = self.extensions.get(person, {})
        by_problem = of_person if isinstance(of_person, dict) else {ALL: of_person}
        try:
            return {
                msgspec.convert(problem, _ProblemKey): self._in_zone(value)
                if isinstance(value, datetime)
                else _length(msgspec.convert(value, _LengthText))
                for problem, value in by_problem.items()
            }
        except msgspec.ValidationError:
            raise ValueError(f"the extension of {person} is {_FORMS['grace']}, or a time") from None

    def problems(self) -> list[str]:
        """Return the problems that the file names."""
        flagged = self.flagged if isinstance(self.flagged, dict) else {}
        extensions = map(self.extensions_of, self.extensions)
        tables: list[Mapping[str, object]] = [self.deadlines, flagged, *extensions]
        return [id for id in dict.fromkeys(id for table in tables for id in table) if id != ALL]

    def _in_zone(self, time: datetime) -> datetime:
        """Return a time of the file in the course's time zone.

        In favour of the students, an hour that the clocks show twice is the second one.
        """
        if time.year not in _YEARS:
            raise ValueError(f"{quoted(str(time))} is no deadline; write 2026-11-02T23:59:00")
        zone = self.zone or time.tzinfo
        if zone is None:
            raise ValueError(f"the deadline {time} has no zone; say which under 'zone'")
        return (time if time.tzinfo else _last(time.replace(tzinfo=zone))).astimezone(zone)

    def extended(self, own: Extensions) -> Extensions:
        """Return a person's extensions, and those of everyone for problems without one."""
        return own if ALL in own else {**self.extensions_of(EVERYBODY), **own}

    def deduction(
        self, problem: ProblemResult, points: float, extended: Extensions
    ) -> Adjustment | None:
        """Return the deduction for lateness from a problem's points; None if there is none.

        Args:
            problem: the graded problem, with the time at which it was submitted.
            points: the points without lateness.
            extended: the person's extensions.
        """
        times = self._times(problem, extended)
        if times is None:
            share = problem.late and self._flagged_share(problem, extended) or Decimal(0)
            reason = f"Handed in late; {_percent(share)}"
        else:
            due, came = times
            share = _exact(self.share) * self._units(due, came)
            when = f"due {due:%Y-%m-%d %H:%M}, handed in {came:%Y-%m-%d %H:%M:%S}"
            reason = (
                f"Late: {when}; {_percent(_exact(self.share or 0.0))} for each {self.per} begun"
            )
        taken = _taken(points, min(share, 1 - _exact(self.floor)))
        return Adjustment(total([-taken]), reason) if taken else None

    def is_late(self, problem: ProblemResult, extended: Extensions) -> bool:
        """Return whether a problem was late, as far as that is known."""
        times = self._times(problem, extended)
        return problem.late if times is None else self._units(*times) > 0

    def is_unclear(self, problem: ProblemResult, extended: Extensions) -> bool:
        """Return whether lateness costs nothing because its length is unknown."""
        is_open = problem.late and self._flagged_share(problem, extended) is None
        return is_open and self._times(problem, extended) is None

    def _flagged_share(self, problem: ProblemResult, extended: Extensions) -> Decimal | None:
        """Return the share for a flag alone; None if it is not settled."""
        by_problem = self.flagged if isinstance(self.flagged, dict) else {ALL: self.flagged}
        share = _of(by_problem, problem.id)
        # A platform's flag ignores extensions that are given here.
        is_extended = _of(extended, problem.id) is not None
        return None if share is None or is_extended else _exact(share)

    def _units(self, due: datetime, came: datetime) -> int:
        """Return how many days or hours have begun between two moments, beyond the grace."""
        if came <= _length(self.grace).after(due):
            return 0
        unit = _UNITS[self.per]
        number = max(0, (came - due) // timedelta(hours=unit.days * 24 or 1) - 1)
        while unit.times(number).after(due) < came:
            number += 1
        return number

    def _times(
        self, problem: ProblemResult, extended: Extensions
    ) -> tuple[datetime, datetime] | None:
        """Return the due time and the time of submission of a problem; None if one is unknown."""
        due, came = _of(self.deadlines, problem.id), moment(problem.handed_in)
        due = self._in_zone(due) if due else None
        extension = _of(extended, problem.id)
        if isinstance(extension, datetime):
            due = extension
        if due is None or came is None:
            return None
        if isinstance(extension, Length):
            due = extension.after(due).astimezone(due.tzinfo)
        return due, came.astimezone(due.tzinfo)


NO_POLICY = LatePolicy(flagged=0.0)
"""Lateness costs nothing."""


def read_late_policy(path: Path) -> LatePolicy:
    """Return the policy in a file; one without a cost if there is no such file.

    Raises:
        UsageError: the file cannot be read or understood.
    """
    if not path.exists():
        return NO_POLICY
    try:
        return msgspec.convert(read_toml(path), LatePolicy, dec_hook=_zone)
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}.") from None
    except ValueError as error:  # msgspec's is one, too
        raise UsageError(f"{path} is not understood: {_explained(str(error))}.") from None


def _explained(message: str) -> str:
    """Return a message of msgspec with the form of the key that is wrong."""
    if unknown := re.search("unknown field `(.*)`", message):
        return f"there is no {unknown[1]!r}; it may say {', '.join(sorted(_FORMS))}"
    key = re.search(r"`\$\.(\w+)", message)
    return f"{key[1]!r} is {_FORMS[key[1]]}" if key else message


def moment(text: str) -> datetime | None:
    """Return the time in a result; None if it is missing, invalid or without a zone."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo and time.year in _YEARS else None


def _length(text: str) -> Length:
    match = re.fullmatch(_LENGTH, text)
    assert match
    return _UNITS[match[2]].times(int(match[1]))


def _zone(_: type, name: str) -> tzinfo:
    """Return the time zone with this name, for msgspec."""
    try:
        return ZoneInfo(name)
    except (OSError, TypeError, ValueError, KeyError):
        raise ValueError(f"there is no zone {name}") from None


def _last(time: datetime) -> datetime:
    """Return the moment of a local time; the later one if the clocks show it twice or skip it."""
    return max(time.replace(fold=fold).astimezone(UTC) for fold in (0, 1))


def _of(by_problem: Mapping[str, Chosen], id: str) -> Chosen | None:
    """Return the entry of a problem, by its number, or else the entry for all problems."""
    own = [value for problem, value in by_problem.items() if number_of(problem) == number_of(id)]
    return own[-1] if own else by_problem.get(ALL)


def _exact(share: float) -> Decimal:
    return Decimal(str(share))


def _taken(points: float, share: Decimal) -> float:
    """Return a share of points in hundredths. Round half of one in the student's favour."""
    exact = _exact(points) * max(share, Decimal(0))
    return float(exact.quantize(Decimal("0.01"), ROUND_HALF_DOWN))


def _percent(share: Decimal) -> str:
    return f"{share * 100:.2f}".rstrip("0").rstrip(".") + " %"
