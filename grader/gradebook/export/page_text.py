"""The text of a feedback page, for platforms that show only text."""

from __future__ import annotations

from html.parser import HTMLParser

_BLOCKS = {"h1", "h2", "p", "li", "pre", "summary"}
_UNSEEN = {"style", "script", "title", "nav"}


def page_text(page: str) -> str:
    """Return a page as text: a paragraph for each block, with indented messages.

    Args:
        page: the HTML page.
    """
    reader = _Reader()
    reader.feed(page)
    reader.close()
    return "\n\n".join(reader.blocks) + "\n"


class _Reader(HTMLParser):
    """Collect the text of each block of a page.

    Attributes:
        blocks: the texts so far; preformatted messages keep their lines.
    """

    def __init__(self) -> None:
        super().__init__()
        self.blocks: list[str] = []
        self._open: list[str] = []
        self._text = ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        """Start a block, or skip an invisible one."""
        if tag in _BLOCKS:
            self._end_block()
        if tag in _BLOCKS | _UNSEEN:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """End a block."""
        if tag in self._open:
            self._end_block()
            while self._open.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        """Collect text."""
        if self._open and self._open[-1] not in _UNSEEN:
            self._text += data

    def _end_block(self) -> None:
        text, self._text = self._text, ""
        if self._open and self._open[-1] == "pre":
            text = "\n".join(f"    {line}" for line in text.splitlines())
        else:
            text = " ".join(text.split())
            text = f"- {text}" if text and self._open[-1:] == ["li"] else text
        if text.strip():
            self.blocks.append(text)
