"""The lines about a watched problem fit into a small window."""

from __future__ import annotations

from grader.student.screen import Screen

TITLE = "  ✗ it doubles"


def row_count(screen: Screen) -> int:
    parts = [part for part in (screen.headline, screen.text, screen.hint, screen.keys) if part]
    return sum(len(part.splitlines()) for part in parts) + len(parts) - 1 + screen.table


def full_screen(lines: int, hint: str = "") -> Screen:
    text = "\n".join([TITLE, *(f"      line {n}" for n in range(lines))])
    return Screen("01: 0 of 2 points", text, hint, table=6, keys="q quit")


def test_fitting_text_is_shown() -> None:
    assert full_screen(5).fitted(80, 24) == full_screen(5)


def test_the_table_is_omitted_first() -> None:
    fitted = full_screen(14).fitted(80, 24)
    assert not fitted.table
    assert fitted.text == full_screen(14).text


def test_the_title_stays_visible() -> None:
    fitted = full_screen(100).fitted(80, 24)
    assert fitted.text.startswith(TITLE)
    assert fitted.text.endswith("uv run pytest")
    assert row_count(fitted) == 23
    assert fitted.keys


def test_a_hint_replaces_the_message() -> None:
    hint = "\n".join("hint" for _ in range(12))
    fitted = full_screen(10, hint).fitted(80, 24)
    assert fitted.hint == hint
    assert not fitted.text


def test_long_lines_take_several_rows() -> None:
    long = Screen("01", "x" * 800, table=6, keys="q quit")
    assert not long.fitted(80, 14).table
