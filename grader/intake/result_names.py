"""Who a submission is, and what its files among the results are called.

A file's name is made of the identity and the real name alone, never of who else is there. Two
identities never have one file, on a file system that does not tell capitals apart either.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata

_UNSAFE = re.compile(r"[^\w.@+ -]", re.ASCII)
_PLATFORMS = re.compile(r"[a-z]+:")
_DEVICES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?")  # as Windows knows them
_LONGEST = 80
_MARK = "~"  # before a hash; no name that is safe as it stands has it, so none is another's


def folder_identity(name: str) -> str:
    """Return who a folder or an archive of that name is, where no platform says whose it is."""
    whole = unicodedata.normalize("NFC", name)
    return f"folder:{whole}" if _PLATFORMS.match(whole) else whole


def result_name(identity: str, full_name: str) -> str:
    """Return the name of a submission's result files. It is chosen here and nowhere else.

    It is the identity where that is safe as it stands, in small letters. Otherwise it is what can
    be read of the real name, with a short hash of the identity.

    Args:
        identity: who it is; any text.
        full_name: the real name; any text.
    """
    readable = _readable(identity)
    if readable == identity.lower() == identity and not _DEVICES.fullmatch(identity):
        return identity
    return f"{_readable(full_name) or readable or 'submission'}{_MARK}{_sha256(identity)[:8]}"


def longer_result_name(identity: str, full_name: str) -> str:
    """Return a name with so much of the hash that nobody else can have it, not even by intent."""
    return f"{_readable(full_name) or 'submission'}{_MARK}{_sha256(identity)}"


def _readable(name: str) -> str:
    """Return a name without what a file's name may not hold, nor accents; empty if none is left."""
    letters = unicodedata.normalize("NFKD", name)
    bare = "".join(letter for letter in letters if not unicodedata.combining(letter))
    safe = _UNSAFE.sub("_", bare)[:_LONGEST].strip(" .")
    return safe if re.search("[A-Za-z0-9]", safe) else ""


def _sha256(identity: str) -> str:
    return hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()
