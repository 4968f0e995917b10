"""When something was handed in: what platforms write, as ISO 8601 with the zone."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

_IN_A_ZONE = re.compile(r"(?P<time>.*\d) ?(?P<zone>[A-Za-z]{2}[\w+/-]*)")


def iso_time(text: str) -> str:
    """Return the time that a text gives; empty if it gives none, or in a zone that is not known.

    Where it gives no zone it is taken for UTC, as the platforms do that leave it out.
    """
    written = re.sub(" (?=[+-])", "", text.strip())  # such as 21:26:00 -0700
    named = _IN_A_ZONE.fullmatch(written)
    if ":" not in written:
        return ""  # a day alone
    with suppress(LookupError, OSError, ValueError):  # it is no time, or there is no such zone
        time = datetime.fromisoformat(named["time"] if named else written)
        name = named["zone"] if named else "UTC"
        zone = UTC if name in ("UTC", "GMT") else ZoneInfo(name)  # these two need no list of zones
        return (time if time.tzinfo else time.replace(tzinfo=zone)).isoformat()
    return ""
