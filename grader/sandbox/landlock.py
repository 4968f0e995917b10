"""Restrict with Landlock which files this process can open."""

from __future__ import annotations

import ctypes
import os
import struct
import sysconfig
from collections.abc import Iterable
from pathlib import Path

from grader.sandbox.libc import system_call, try_system_call

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_READ_FILE, _READ_DIR = 1 << 2, 1 << 3


def version() -> int:
    """Return the version of Landlock in the kernel, or 0 if the kernel has no Landlock."""
    return max(0, try_system_call(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint(1)))


def restrict_files(paths: Iterable[str]) -> None:
    """Allow this process to read only `paths`, and to write no files.

    Raises:
        OSError: the kernel has no Landlock, or refuses the restriction.
    """
    offered = version()
    if offered == 0:
        raise OSError("the kernel has no Landlock")
    rights = {1: 13, 2: 14, 3: 15, 4: 15}.get(offered, 16)
    network = 0b11 if offered >= 4 else 0
    scopes = 0b11 if offered >= 6 else 0
    # Fields that this version of Landlock doesn't know must be omitted or 0.
    attributes = struct.pack("=QQQ", (1 << rights) - 1, network, scopes)
    size = 8 if offered < 4 else 16 if offered < 6 else 24
    ruleset = system_call(
        _CREATE_RULESET, attributes[:size], ctypes.c_size_t(size), ctypes.c_uint(0)
    )
    for path in paths:
        _allow_reading(ruleset, path)
    system_call(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint(0))
    os.close(ruleset)


def _allow_reading(ruleset: int, path: str) -> None:
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # an unreadable path needs no rule
    rights = _READ_FILE | _READ_DIR if os.path.isdir(path) else _READ_FILE
    rule = struct.pack("=Qi", rights, opened)
    system_call(_ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(1), rule, ctypes.c_uint(0))
    os.close(opened)


def readable_paths(secret: Iterable[str], wanted: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the paths that Python and torch must read, except the secret paths.

    Args:
        secret: files and folders that must stay unreadable. A folder that contains a secret path
            is replaced by its entries without secret paths.
        wanted: folders that must be readable in addition to Python's folders.
    """
    hidden = [Path(s).resolve() for s in secret]
    # The system reads the first file when it loads a library. The devices store no data.
    paths = {"/etc/ld.so.cache", "/dev/null", "/dev/zero", "/dev/urandom"}
    folders = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    for folder in {*folders, *wanted, *_library_folders()}:
        paths.update(str(path) for path in _without(Path(folder).resolve(), hidden))
    return tuple(sorted(paths))


def _library_folders() -> set[str]:
    """Return the folders of the shared libraries that this process has loaded."""
    folders = set()
    for line in Path("/proc/self/maps").read_text().splitlines():
        path = line.partition("/")[1] + line.partition("/")[2]
        if ".so" in os.path.basename(path):
            folders.add(os.path.dirname(path))
    return folders


def _without(path: Path, hidden: list[Path]) -> list[Path]:
    """Return the paths to allow instead of `path`, so that no path in `hidden` is allowed.

    If `path` contains no hidden path, return only `path`. If `path` is hidden or is in a hidden
    folder, return an empty list.
    """
    if any(path.is_relative_to(secret) for secret in hidden):
        return []
    if not any(secret.is_relative_to(path) for secret in hidden):
        return [path]
    try:
        return [kept for entry in path.iterdir() for kept in _without(entry, hidden)]
    except OSError:
        return []
