"""Write HTML pages. Each page is a single file that does not use other files."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from grader.files import write_whole
from grader.result import shown
from grader.text import plain

_TEMPLATES = Path(__file__).parent / "templates"


def render(template: str, **values: object) -> str:
    """Return the HTML text of a page. All values are escaped, and control characters are replaced.

    Args:
        template: the name of a file in `templates/`.
        values: the values of the variables in the template.
    """
    return _environment().get_template(template).render(**values)


def write_pages(pages: Iterable[tuple[str, str]], folder: Path) -> None:
    """Write pages to a folder, and remove all other pages from it.

    Args:
        pages: a (name of the submission, HTML text) pair for each page.
        folder: the folder for the pages. Unchanged pages are not written again.

    Raises:
        OSError: a page cannot be written.
    """
    written = set()
    for name, page in pages:
        path = folder / f"{name}.html"
        written.add(path.name)
        if not (path.is_file() and path.read_bytes() == page.encode()):
            write_whole(path, page)
    for path in folder.glob("[!.]*.html"):
        if path.name not in written:
            path.unlink()


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_harmless,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"points": shown, "url": lambda name: quote(plain(name), safe="")}
    scripts = sorted(_TEMPLATES.glob("*.js"))
    script = "".join(path.read_text(encoding="utf-8") for path in scripts)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    environment.globals |= {"script": Markup(script), "script_hash": f"sha256-{digest}"}
    return environment


def _harmless(value: object) -> object:
    return plain(value) if type(value) is str else value
