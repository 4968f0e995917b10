"""Read the late policy from `late.toml`, and compute deductions.

If the file does not exist, there are no deductions. An example:

    per = "day"              # or "hour"; each day or hour that has begun counts
    share = 0.1              # the share of the points that is lost for each day or hour
    grace = "15 minutes"     # no deduction until this time after the deadline
    floor = 0.5              # the smallest share of the points that is kept
    flagged = 0.2            # the share of the points that is lost for a late file of unknown time
    zone = "Europe/Berlin"   # the course's time zone

    [deadlines]
    03 = 2026-11-02T23:59:00

    [extensions]
    "canvas:1004" = "2 days"
    "Ada Lovelace" = { 03 = "1 week", 04 = 2026-11-16T12:00:00 }
    "*" = { 05 = "1 day" }   # everyone

`flagged` can be different for each problem: `flagged = { 03 = 0, "*" = 0.2 }`.

Days and weeks are calendar days in the course's time zone. For example, one day after Saturday
20:00 is Sunday 20:00, even if the clocks change. Hours and minutes are exact. The deduction is
rounded to hundredths of a point, and halves are rounded in the student's favour.
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
"""The key for all problems."""

_LENGTH = r"([0-9]{1,4}) *(minute|hour|day|week)s?"
_YEARS = range(1990, 2200)
"""The range of valid years in deadlines and submission times."""

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
"""A description of the valid values of each key, for error messages."""

Chosen = TypeVar("Chosen")


@dataclass(frozen=True)
class Length:
    """A length of time: a number of calendar days plus an exact duration."""

    days: int = 0
    exact: timedelta = timedelta()

    def after(self, start: datetime) -> datetime:
        """Return `start` plus this length. Days are calendar days in the time zone of `start`."""
        if not self.days:
            return start.astimezone(UTC) + self.exact
        return _to_utc(start + timedelta(days=self.days)) + self.exact

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
"""An extension: a length of time after the deadline, or a new deadline."""

Extensions = Mapping[str, Extension]
"""A map from a problem to a person's extension. The key `*` means all problems."""


class LatePolicy(Struct, frozen=True, forbid_unknown_fields=True):
    """The content of `late.toml`.

    Attributes:
        per: the unit of time, "day" or "hour".
        share: the share of the points that is lost for each unit that has begun.
        grace: a length of time after the deadline. Until it has passed, nothing is deducted.
        floor: the smallest share of the points that is kept.
        flagged: the share of the points that is lost if the submission time of a late file is
            unknown: one share for all problems, or a share by problem.
        zone: the course's time zone.
        deadlines: maps each problem to its deadline.
        extensions: maps each person to the extensions. The key `*` means everyone.
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
        """Check the values that depend on other values."""
        if not self.share and self.flagged is None:
            raise ValueError("it has neither 'share' nor 'flagged', so lateness would cost nothing")
        if self.share and not self.deadlines:
            raise ValueError("'share' needs the problems' deadlines, under [deadlines]")
        _ = [
            *map(self._in_zone, self.deadlines.values()),
            *map(self.extensions_of, self.extensions),
        ]

    def extensions_of(self, person: str) -> Extensions:
        """Map problems to the extensions of a person.

        Args:
            person: a key of `extensions`.

        Raises:
            ValueError: an extension is invalid.
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
            form = f"a time, or {_FORMS['grace']}"
            raise ValueError(f"the extension of {person} must be {form}") from None

    def problems(self) -> list[str]:
        """Return the problems that `late.toml` names."""
        flagged = self.flagged if isinstance(self.flagged, dict) else {}
        extensions = map(self.extensions_of, self.extensions)
        tables: list[Mapping[str, object]] = [self.deadlines, flagged, *extensions]
        return [id for id in dict.fromkeys(id for table in tables for id in table) if id != ALL]

    def _in_zone(self, time: datetime) -> datetime:
        """Convert a time from the file to the course's time zone.

        If the clocks show a time twice, use the second time, in the students' favour.

        Raises:
            ValueError: the year is invalid, or the time zone is unknown.
        """
        if time.year not in _YEARS:
            raise ValueError(
                f"{quoted(str(time))} is not a valid deadline, such as 2026-11-02T23:59:00"
            )
        zone = self.zone or time.tzinfo
        if zone is None:
            raise ValueError(f"the deadline {time} has no time zone; set 'zone'")
        return (time if time.tzinfo else _to_utc(time.replace(tzinfo=zone))).astimezone(zone)

    def extended(self, personal: Extensions) -> Extensions:
        """Add the extensions for everyone to a person's own extensions, which take precedence."""
        return personal if ALL in personal else {**self.extensions_of(EVERYBODY), **personal}

    def deduction(
        self, problem: ProblemResult, points: float, extended: Extensions
    ) -> Adjustment | None:
        """Return the deduction for lateness from a problem's points, or None for no deduction.

        Args:
            problem: the graded problem, with the time at which it was submitted.
            points: the points before the deduction.
            extended: the result of the method `extended` for the person.
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
        taken = _points_to_deduct(points, min(share, 1 - _exact(self.floor)))
        return Adjustment(total([-taken]), reason) if taken else None

    def is_late(self, problem: ProblemResult, extended: Extensions) -> bool:
        """Return whether the file of a problem was submitted late.

        If the deadline or the submission time is unknown, return the platform's flag.
        """
        times = self._times(problem, extended)
        return problem.late if times is None else self._units(*times) > 0

    def is_unclear(self, problem: ProblemResult, extended: Extensions) -> bool:
        """Return whether the platform reports a file as late, but no deduction can be computed."""
        is_open = problem.late and self._flagged_share(problem, extended) is None
        return is_open and self._times(problem, extended) is None

    def _flagged_share(self, problem: ProblemResult, extended: Extensions) -> Decimal | None:
        """Return the share to deduct from a late problem whose submission time is unknown.

        Return None if the policy contains no such share, or if the problem has an extension.
        """
        by_problem = self.flagged if isinstance(self.flagged, dict) else {ALL: self.flagged}
        share = _entry_for(by_problem, problem.id)
        # The platform ignores the extensions in `late.toml`, so its flag can be wrong.
        is_extended = _entry_for(extended, problem.id) is not None
        return None if share is None or is_extended else _exact(share)

    def _units(self, due: datetime, came: datetime) -> int:
        """Return the number of days or hours that have begun between two times.

        If `came` is within the grace period after `due`, return 0.
        """
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
        """Return the deadline and the submission time of a problem; None if either is unknown."""
        due, came = _entry_for(self.deadlines, problem.id), parse_time(problem.handed_in)
        due = self._in_zone(due) if due else None
        extension = _entry_for(extended, problem.id)
        if isinstance(extension, datetime):
            due = extension
        if due is None or came is None:
            return None
        if isinstance(extension, Length):
            due = extension.after(due).astimezone(due.tzinfo)
        return due, came.astimezone(due.tzinfo)


NO_POLICY = LatePolicy(flagged=0.0)
"""The policy without deductions."""


def read_late_policy(path: Path) -> LatePolicy:
    """Return the policy in a file. If the file does not exist, return `NO_POLICY`.

    Raises:
        UsageError: the file can't be read or is invalid.
    """
    if not path.exists():
        return NO_POLICY
    try:
        return msgspec.convert(read_toml(path), LatePolicy, dec_hook=_zone)
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}.") from None
    except ValueError as error:  # msgspec's exception is also a ValueError
        raise UsageError(f"{path} is invalid: {_explained(str(error))}.") from None


def _explained(message: str) -> str:
    """Return a clearer message than msgspec's message about an invalid key or value."""
    if unknown := re.search("unknown field `(.*)`", message):
        return f"{unknown[1]!r} is unknown; valid keys are {', '.join(sorted(_FORMS))}"
    key = re.search(r"`\$\.(\w+)", message)
    return f"{key[1]!r} must be {_FORMS[key[1]]}" if key else message


def parse_time(text: str) -> datetime | None:
    """Parse a submission time. Return None if it is missing, invalid or has no time zone."""
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
    """Return the time zone with this name. msgspec calls this function."""
    try:
        return ZoneInfo(name)
    except (OSError, TypeError, ValueError, KeyError):
        raise ValueError(f"there is no time zone {name}") from None


def _to_utc(time: datetime) -> datetime:
    """Convert a local time to UTC.

    If the clocks show the local time twice or skip it, return the later of two possible times.
    """
    return max(time.replace(fold=fold).astimezone(UTC) for fold in (0, 1))


def _entry_for(by_problem: Mapping[str, Chosen], id: str) -> Chosen | None:
    """Return a problem's entry. If it has none, return the entry for all problems or None."""
    entries = [
        value for problem, value in by_problem.items() if number_of(problem) == number_of(id)
    ]
    return entries[-1] if entries else by_problem.get(ALL)


def _exact(share: float) -> Decimal:
    return Decimal(str(share))


def _points_to_deduct(points: float, share: Decimal) -> float:
    """Return the points to deduct, rounded to hundredths, with halves rounded down."""
    exact = _exact(points) * max(share, Decimal(0))
    return float(exact.quantize(Decimal("0.01"), ROUND_HALF_DOWN))


def _percent(share: Decimal) -> str:
    return f"{share * 100:.2f}".rstrip("0").rstrip(".") + " %"
