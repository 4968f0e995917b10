"""Which files are archives by their names, and which kinds of them are read."""

from __future__ import annotations

ARCHIVE_SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz")
"""How the names of archives end that are read."""

_OTHER_ARCHIVES = (".rar", ".7z", ".tar.bz2", ".tbz2", ".tar.xz", ".txz", ".gz", ".bz2", ".xz")


def archive_suffix(name: str) -> str:
    """Return how the name of an archive ends, of any kind; empty when it is no archive's name."""
    suffixes = (*ARCHIVE_SUFFIXES, *_OTHER_ARCHIVES)
    return next((name[-len(s) :] for s in suffixes if name.lower().endswith(s)), "")


def without_suffix(name: str) -> str:
    """Return the name of an archive, or of anything else, without such an ending."""
    return name.removesuffix(archive_suffix(name))


def is_readable(name: str) -> bool:
    """Tell whether an archive is of a kind that is read."""
    return name.lower().endswith(ARCHIVE_SUFFIXES)
