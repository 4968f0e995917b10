"""What lateness costs: one small file, `late.toml`; without it nothing.

    per = "day"              # or "hour": each one that has begun counts
    share = 0.1              # of the points that were reached, for each
    grace = "15 minutes"     # so much later costs nothing
    floor = 0.5              # at least this share of the points is kept
    flagged = 0.2            # the share where a platform says only that something came late
    zone = "Europe/Berlin"   # of deadlines without one

    [deadlines]
    03 = 2026-11-02T23:59:00

    [extensions]
    "canvas:1004" = "2 days"
    "Ada Lovelace" = { 03 = "1 week", 04 = 2026-11-16T12:00:00 }

Times are compared as moments, so that a day has 24 hours in the week of a clock change too. The
deduction is rounded to hundredths of a point, and half of one in the student's favour.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import ROUND_HALF_DOWN, Decimal
from pathlib import Path
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

from grader.errors import UsageError
from grader.gradebook.lines import number_of
from grader.result import Adjustment, ProblemResult, total
from grader.text import counted, quoted

FILE = "late.toml"

_UNITS = {"day": timedelta(days=1), "hour": timedelta(hours=1)}
_LENGTHS = {**_UNITS, "minute": timedelta(minutes=1), "week": timedelta(weeks=1)}
_LENGTH = re.compile(r"(\d+) *(minute|hour|day|week)s?")
_KEYS = {"per", "share", "grace", "floor", "flagged", "zone", "deadlines", "extensions"}
_PROBLEM = re.compile(r"\d\d?(-[a-z0-9-]+)?")

EVERY_PROBLEM = "*"
"""Stands for each of them in what is said by problem."""

Chosen = TypeVar("Chosen")

Extension = timedelta | datetime
"""So much later than the deadline, or a deadline of one's own."""


@dataclass(frozen=True)
class LatePolicy:
    """What lateness costs.

    Attributes:
        per: "day" or "hour".
        share: of the points, for each of them that has begun.
        grace: how much later costs nothing.
        floor: the share of the points that is kept in any case.
        flagged: the share where it is only known that something came late; None to take nothing.
        deadlines: by the numbers of problems.
        extensions: by person, then by the number of a problem, or `*` for all.
    """

    per: str = "day"
    share: Decimal = Decimal(0)
    grace: timedelta = timedelta()
    floor: Decimal = Decimal(0)
    flagged: Decimal | None = None
    deadlines: Mapping[str, datetime] = field(default_factory=dict)
    extensions: Mapping[str, Mapping[str, Extension]] = field(default_factory=dict)

    def deduction(
        self, problem: ProblemResult, points: float, extended: Mapping[str, Extension]
    ) -> Adjustment | None:
        """Return what lateness takes from a problem's points; None when it takes nothing.

        Args:
            problem: with what is known of when it came.
            points: what counts without lateness.
            extended: the person's extensions.
        """
        late_by = self._late_by(problem, extended)
        if late_by is None:
            share = self._flagged_share(problem, extended)
            reason = f"Handed in late; {_percent(share)}"
        else:
            units = 0 if late_by <= self.grace else -(-late_by // _UNITS[self.per])
            reason = f"Late by {_said(late_by)}; {_percent(self.share)} for each {self.per} begun"
            share = self.share * units
        taken = _taken(points, min(share, 1 - self.floor))
        return Adjustment(total([-taken]), reason) if taken else None

    def is_late(self, problem: ProblemResult, extended: Mapping[str, Extension]) -> bool:
        """Tell whether a problem came late, as far as that is known."""
        late_by = self._late_by(problem, extended)
        return problem.late if late_by is None else late_by > self.grace

    def is_unclear(self, problem: ProblemResult, extended: Mapping[str, Extension]) -> bool:
        """Tell whether something came late and nothing is taken as it isn't known how late."""
        settled = self.flagged is not None and _of(extended, problem.id) is None
        return problem.late and not settled and self._late_by(problem, extended) is None

    def _flagged_share(self, problem: ProblemResult, extended: Mapping[str, Extension]) -> Decimal:
        # A platform's flag knows nothing of extensions that are given here.
        if not problem.late or _of(extended, problem.id) is not None:
            return Decimal(0)
        return self.flagged or Decimal(0)

    def _late_by(
        self, problem: ProblemResult, extended: Mapping[str, Extension]
    ) -> timedelta | None:
        """Return how late a problem came; None when that isn't known."""
        deadline, came = _of(self.deadlines, problem.id), moment(problem.handed_in)
        extension = _of(extended, problem.id)
        if isinstance(extension, datetime):
            deadline, extension = extension, None
        if deadline is None or came is None:
            return None
        # Moments in one zone are subtracted by the clock on the wall, which changes twice a year.
        allowed = deadline.astimezone(UTC) + (extension or timedelta())
        return came.astimezone(UTC) - allowed


def moment(text: str) -> datetime | None:
    """Return a time as a result says it; None when it says none, or none with a zone."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else None


def _of(by_problem: Mapping[str, Chosen], id: str) -> Chosen | None:
    """Return what holds for a problem, by its number, or for all."""
    return by_problem.get(number_of(id), by_problem.get(EVERY_PROBLEM))


def _taken(points: float, share: Decimal) -> float:
    """Return a share of points in hundredths; half of one is rounded in the student's favour."""
    exact = Decimal(str(points)) * max(share, Decimal(0))
    return float(exact.quantize(Decimal("0.01"), ROUND_HALF_DOWN))


def _said(length: timedelta) -> str:
    """Return a length of time in words, in minutes that have begun."""
    minutes = -(-length // timedelta(minutes=1))
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = [(days, "day"), (hours, "hour"), (minutes, "minute")]
    return " ".join(counted(number, what) for number, what in parts if number)


def _percent(share: Decimal) -> str:
    return f"{share * 100:.2f}".rstrip("0").rstrip(".") + " %"


# Reading


def read_late_policy(path: Path) -> LatePolicy | None:
    """Return the policy in a file; None when there is no such file.

    Raises:
        UsageError: it can't be read, or says something that isn't understood.
    """
    if not path.exists():
        return None
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8-sig"), parse_float=Decimal)
        return _policy(data)
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}.") from None
    except ValueError as error:
        raise UsageError(f"{path} is not understood: {error}.") from None


def _policy(data: dict[str, Any]) -> LatePolicy:
    if unknown := sorted(data.keys() - _KEYS):
        raise ValueError(f"there is no {unknown[0]!r}; it may say {', '.join(sorted(_KEYS))}")
    if data.get("per", "day") not in [*_UNITS]:
        raise ValueError('\'per\' is "day" or "hour"')
    if not {"share", "flagged"} & data.keys():
        raise ValueError("it says neither 'share' nor 'flagged', so lateness would cost nothing")
    share = _share(data, "share")
    if share and not _table(data, "deadlines"):
        raise ValueError("'share' needs the problems' deadlines, under [deadlines]")
    zone = _zone(data.get("zone"))
    return LatePolicy(
        data.get("per", "day"),
        share,
        _length(data.get("grace", "0 minutes"), "grace"),
        _share(data, "floor"),
        _share(data, "flagged") if "flagged" in data else None,
        {_problem(name): _deadline(at, zone) for name, at in _table(data, "deadlines").items()},
        {who: _extension(who, text, zone) for who, text in _table(data, "extensions").items()},
    )


def _share(data: dict[str, Any], name: str) -> Decimal:
    found = data.get(name, 0)
    is_number = isinstance(found, int | Decimal) and not isinstance(found, bool)
    if not is_number or not Decimal(found).is_finite() or not 0 <= found <= 1:
        raise ValueError(f"{name!r} is a share from 0 to 1, such as 0.1")
    return Decimal(found)


def _length(text: Any, name: str) -> timedelta:
    match = _LENGTH.fullmatch(text) if isinstance(text, str) else None
    if not match:
        raise ValueError(f'{name!r} is a length such as "15 minutes" or "2 days"')
    return int(match[1]) * _LENGTHS[match[2]]


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
    if name == EVERY_PROBLEM:
        return name
    if not _PROBLEM.fullmatch(name):
        raise ValueError(f"{quoted(name)} is no problem; write its number, such as 03")
    return number_of(name)


def _deadline(at: Any, zone: tzinfo | None) -> datetime:
    if not isinstance(at, datetime):
        raise ValueError(f"{quoted(str(at))} is no deadline; write 2026-11-02T23:59:00")
    if at.tzinfo is None and zone is None:
        raise ValueError(f"the deadline {at} has no zone; say which under 'zone'")
    # An hour that the clock shows twice counts as the second one, in the students' favour.
    return at if at.tzinfo else at.replace(tzinfo=zone, fold=1)


def _extension(who: str, given: Any, zone: tzinfo | None) -> dict[str, Extension]:
    by_problem = given if isinstance(given, dict) else {EVERY_PROBLEM: given}
    return {
        _problem(name): _deadline(value, zone)
        if isinstance(value, datetime)
        else _length(value, f"the extension of {who}")
        for name, value in by_problem.items()
    }
