"""Remove dangerous characters from text, format words and names, and parse numbers."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from decimal import Decimal

MOST_POINTS = 1_000_000
"""The largest valid number of points. A larger number is a typing error."""

_NUMBER = re.compile(r"-?[0-9]{1,20}(?:[.,][0-9]{1,20})?")

# Control characters except line ends, marks that change the direction of text, lone surrogates, and
# characters that XML 1.0 doesn't allow.
_UNSHOWABLE = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
    "\ud800-\udfff\ufeff\ufff9-\ufffb\ufffe\uffff]"
)


_SIMPLER = str.maketrans(
    {
        "✓": "+",
        "✗": "x",
        "○": "o",
        "·": "-",
        "—": "-",
        "…": "...",
        "√": "root ",
        "×": "x",
        "→": "->",
        "≤": "<=",
        "≥": ">=",
        "█": "#",
        "░": ".",
    }
)


def plain(text: str) -> str:
    """Replace tabs by blanks, and other unsafe characters by a replacement character.

    These characters are unsafe in a terminal or in XML: control characters except line ends, marks
    that change the direction of text, and lone surrogates.
    """
    return _UNSHOWABLE.sub("\N{REPLACEMENT CHARACTER}", text.replace("\t", "    "))


def printable(text: str, encoding: str) -> str:
    """Replace control characters and characters that the encoding lacks."""
    text = plain(text)
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        simple = unicodedata.normalize("NFKD", text.translate(_SIMPLER))  # ² and ᵀ become 2 and T
        return simple.encode(encoding, "replace").decode(encoding)
    return text


def line(text: str) -> str:
    """Join the lines of a text into one line, and replace unsafe characters."""
    return " ".join(map(str.strip, plain(text).strip().splitlines()))


def person_name(text: str) -> str:
    """Return a name in one line, in which letters and blanks are normalized."""
    return " ".join(plain(unicodedata.normalize("NFC", text)).split())


def counted(number: int, what: str) -> str:
    """Return a number and its noun: "1 file", "2 files"."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def listed(words: Sequence[str]) -> str:
    """Join words for a sentence: "one", "one and two", "one, two and three"."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def some(texts: Sequence[object], most: int) -> str:
    """Join texts for a sentence. After `most` texts, add only the number of the others."""
    more = len(texts) - most
    return ", ".join(map(str, texts[:most])) + (f" and {more} more" if more > 0 else "")


def quoted(name: str) -> str:
    """Return a name in quotation marks for a sentence, without control characters."""
    return f"'{plain(name)}'".replace("\n", "\N{REPLACEMENT CHARACTER}")


def lookalike_key(name: str) -> str:
    """Return a key that is equal for names that look the same.

    The key does not depend on upper and lower case, blanks, invisible format characters, or the way
    in which Unicode encodes a letter.
    """
    letters = unicodedata.normalize("NFKC", name).casefold()
    return "".join(c for c in letters if unicodedata.category(c) not in {"Cf", "Zs", "Cc"})


# Some programs also accept the typographic minus, and wide and small forms of these signs.
_FORMULA = tuple("=+-@\u2212\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b")
_JOINERS = "\u200c\u200d"  # invisible, but part of names in Persian and in Indian scripts


def cell(text: str) -> str:
    """Escape text that a spreadsheet would run as a formula: one that starts with =, +, - or @."""
    # Some programs end a line at a control character. Others ignore it before a formula's sign.
    plain = "".join(
        c if c.isprintable() or c in _JOINERS else "\N{REPLACEMENT CHARACTER}" for c in text
    )
    return f"'{plain}" if text.lstrip().startswith(_FORMULA) else plain


def from_cell(text: str) -> str:
    """Return the original text of a cell that `cell` escaped."""
    return text[1:] if cell(text[1:]) == text else text


def parse_number(text: str) -> float | None:
    """Parse a number with a decimal point or comma. Return None for any other text."""
    text = text.strip()
    return float(text.replace(",", ".")) if _NUMBER.fullmatch(text) else None


def parse_points(text: str) -> float | None:
    """Parse points. Return None if the text is no number from 0 to `MOST_POINTS`."""
    number = parse_number(text)
    return number if is_between(number, 0, MOST_POINTS) else None


def is_between(value: object, least: float, most: float) -> bool:
    """Return whether a value is a number from `least` to `most`. NaN and bools are rejected."""
    if not isinstance(value, int | float | Decimal) or isinstance(value, bool):
        return False
    return value == value and least <= value <= most  # NaN equals nothing
