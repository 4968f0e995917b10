"""What lies in a submission and is nobody's work: what tools leave behind, what the course gave."""

from __future__ import annotations

from collections.abc import Iterable

_NOISE = {
    *{"__MACOSX", "__pycache__", ".DS_Store", ".git", ".hg", ".svn", ".venv", "node_modules"},
    *{"venv", "site-packages", ".tox", ".nox", ".eggs"},
    *{".idea", ".vscode", ".ipynb_checkpoints", ".mypy_cache", ".pytest_cache", ".ruff_cache"},
    *{"Thumbs.db", "desktop.ini"},
}
_MINOR = (".", "test_", "README", "explore.py", "probe.py", "conftest.py", "__init__.py")


def is_noise(name: str) -> bool:
    """Tell whether a file or folder is left behind by a tool. Then it isn't there for anybody."""
    return name in _NOISE or name.startswith("._")


def is_in_noise(parts: Iterable[str]) -> bool:
    """Tell whether anything of the parts of a path is."""
    return any(map(is_noise, parts))


def is_minor(name: str) -> bool:
    """Tell whether a file is a tool's or the course's own. Then it is never taken for work."""
    return name.startswith(_MINOR)
