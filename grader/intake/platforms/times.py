"""When something was handed in: what platforms write, as ISO 8601 with the zone."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

_TIME = re.compile(
    r"(?P<day>\d{4}-\d\d-\d\d)[T ](?P<hour>\d\d:\d\d(?::\d\d)?)(?:\.(?P<part>\d{1,6})\d*)?"
    r"(?: ?(?P<zone>Z|[+-]\d\d:?\d\d|[A-Za-z][\w+-]*(?:/[\w+-]+)*))?"
)
_OFFSET = re.compile(r"([+-])(\d\d):?(\d\d)")


def iso_time(text: str) -> str:
    """Return the time that a text gives; empty if it gives none, or in a zone that is not known.

    Where it gives no zone it is taken for UTC, as the platforms do that leave it out.
    """
    match = _TIME.fullmatch(text.strip())
    zone = _zone(match["zone"] or "UTC") if match else None
    if match is None or zone is None:
        return ""
    with suppress(ValueError):
        time = datetime.fromisoformat(f"{match['day']}T{match['hour']}")
        part = int((match["part"] or "").ljust(6, "0"))
        return time.replace(microsecond=part, tzinfo=zone).isoformat()
    return ""


def _zone(name: str) -> tzinfo | None:
    if name in ("Z", "UTC", "GMT"):
        return UTC
    if offset := _OFFSET.fullmatch(name):
        sign, hours, minutes = offset.groups()
        ahead = timedelta(hours=int(hours), minutes=int(minutes))
        with suppress(ValueError):
            return timezone(ahead if sign == "+" else -ahead)
        return None
    with suppress(LookupError, OSError, ValueError):  # there is no such zone
        return ZoneInfo(name)
    return None
