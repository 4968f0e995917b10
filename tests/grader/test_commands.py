"""Every command in the documents works.

The lines of blocks that begin with ```bash run in a copy of the project. A line in a problem's
README runs in the problem's folder, except if the line begins with `cd problems/`. All other lines
run in the root. A command that several READMEs contain runs only in the folder of the first one.
Tests that `-k` selects are only collected. Blocks that begin with ```console or ```text do not run.
They contain commands that install something, never end or use files of the reader.
"""

from __future__ import annotations

import contextlib
import functools
import io
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

from grader.cli_instructor import app
from grader.course import own_course

if os.name == "nt" or not shutil.which("make"):
    pytest.skip("the documents' commands are for bash and make", allow_module_level=True)

ROOT = own_course().root
DOCUMENTS = sorted(
    path
    for pattern in ("README.md", "CONTRIBUTING.md", "docs/**/*.md", "problems/*/README.md")
    for path in ROOT.glob(pattern)
)

RUNNABLE = re.compile(r"(cat|grader|ls|make|pytest|python|uv run)\b|\[ ")
"""The beginnings of commands that may run. Other commands might install something, or wait."""

SECONDS = 480
"""The time limit for a command, which is long enough on a busy machine."""

MAKE_VARIABLES = ("MAKEFLAGS", "MAKEOVERRIDES", "MFLAGS", "MAKELEVEL", "ARGS")
"""Environment variables that one make passes to another."""

UV = """#!/bin/sh
# Replaces uv: runs a command in the existing environment, off the network.
case "$1" in
    --version) echo "a stand-in for uv" ;;
    run) shift && exec "$@" ;;
    *) echo "the stand-in for uv knows only 'uv run'" >&2 && exit 64 ;;
esac
"""


class Command(NamedTuple):
    """A command, and the folder in which it runs, relative to the root."""

    folder: str
    text: str

    def runnable(self) -> bool:
        """Return whether the test may run the command."""
        return all(RUNNABLE.match(part.strip()) for part in re.split(r"&&|\|\|?|;", self.text))

    @property
    def selection(self) -> str:
        """The argument of `pytest -k`, or "" for a command with other arguments."""
        match = re.fullmatch(r"uv run pytest -k (.+)", self.text)
        return shlex.split(match[1])[0] if match else ""

    def allowed_statuses(self) -> set[int]:
        """Return the allowed exit statuses. 1 means that a problem isn't solved yet."""
        unsolved = re.search(r"\bpytest(?! tests)\b|\bgrader( check|$)", self.text)
        return {0, 1} if unsolved else {0}


def blocks(text: str) -> Iterator[tuple[int, str, list[str]]]:
    """Yield the line number, the language and the lines of each code block in a document."""
    for match in re.finditer(r"^( *)```([^\n`]*)\n(.*?)^\1```", text, re.MULTILINE | re.DOTALL):
        lines = textwrap.dedent(match[3]).replace("\\\n", " ").splitlines()
        yield text.count("\n", 0, match.start()) + 1, match[2].strip(), lines


def written_commands() -> Iterator[tuple[str, Command]]:
    """Yield (place, command) pairs. A place is the file and the line of a block."""
    for path in DOCUMENTS:
        document = path.relative_to(ROOT)
        for number, language, lines in blocks(path.read_text(encoding="utf-8")):
            if language != "bash":
                continue
            commands = [line for line in (re.sub(r"(^|\s)#.*", "", row) for row in lines) if line]
            from_root = len(document.parts) < 3 or commands[0].startswith("cd problems/")
            folder = "." if from_root else str(document.parent)
            for command in commands:
                change = re.fullmatch(r"cd (\S+)(?: *&& *(.*))?", command.strip())
                if change:
                    folder = os.path.normpath(os.path.join(folder, change[1]))
                rest = change[2] if change else command.strip()
                if rest:
                    yield f"{document}:{number}", Command(folder, rest)


def make_commands(make: str) -> list[str]:
    """Return the commands that a call of make runs."""
    dry = ["make", "--dry-run", "UV=uv", *shlex.split(make)[1:]]
    # If make runs these tests, it sets variables. Some of them change the commands, such as ARGS.
    # Others let a nested make print its folder.
    variables = {name: value for name, value in os.environ.items() if name not in MAKE_VARIABLES}
    done = subprocess.run(dry, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
    return [line.strip() for line in done.stdout.splitlines()]


@functools.cache
def ci_commands() -> list[str]:
    """Return the commands that CI runs."""
    lines = (ROOT / ".ci/run").read_text(encoding="utf-8").splitlines()
    return [made for line in lines if line.startswith("make ") for made in make_commands(line)]


def runs_in_ci(command: Command) -> bool:
    """Return whether CI runs a command, possibly with more options."""
    return command.folder == "." and any(
        f"{own} ".startswith(f"{command.text} ") for own in ci_commands()
    )


def commands_to_run() -> dict[Command, str]:
    """Map each command that CI does not run to the first place where it is written."""
    places: dict[Command, str] = {}
    for place, command in written_commands():
        made = make_commands(command.text) if command.text.startswith("make ") else []
        plain = bool(made) and all(line.startswith("uv run ") for line in made)
        for each in [Command(".", line) for line in made] if plain else [command]:
            in_problem = each.folder.startswith("problems/") and not each.selection
            first = next((c for c in places if in_problem and c.text == each.text), each)
            if not runs_in_ci(each):
                places.setdefault(first, place)
    return places


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the files of the project that git tracks or does not ignore."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    folder = tmp_path_factory.mktemp("project")
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


@pytest.mark.slow
def test_commands_end_with_an_allowed_status(copy: Path, tmp_path: Path) -> None:
    (tmp_path / "uv").write_text(UV, encoding="utf-8")
    (tmp_path / "uv").chmod(0o755)
    environment = {
        **os.environ,
        "PATH": os.pathsep.join(
            [str(tmp_path), str(Path(sys.executable).parent), os.environ["PATH"]]
        ),
        # An editable install would use the original instead of the copy.
        "PYTHONPATH": str(copy),
    }

    def failure(place: str, command: Command) -> str:
        """Return the reason why a command fails, or an empty string."""
        where = f"{place}: '{command.text}' in {command.folder}"
        if command.selection:
            return "" if selects_tests(command) else f"{where} selects no test"
        if not command.runnable():
            return f"{where} isn't run here: write ```console instead of ```bash"
        status, output = run(command, copy, environment)
        if status is None:
            return f"{where} took more than {SECONDS} s:\n{output}"
        right = status in command.allowed_statuses()
        return "" if right else f"{where} returned {status}:\n{output}"

    commands = commands_to_run()
    assert commands
    with ThreadPoolExecutor(2) as pool:
        failures = [*filter(None, pool.map(failure, commands.values(), commands))]
    if failures:
        pytest.fail("\n\n".join(failures), pytrace=False)


def run(command: Command, copy: Path, environment: dict[str, str]) -> tuple[int | None, str]:
    """Run a command, and return its exit status and output. The status is None at a timeout."""
    process = subprocess.Popen(
        ["bash", "-c", command.text],
        cwd=copy / command.folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # including its child processes
        return None, process.communicate()[0]
    return process.returncode, output


def selects_tests(command: Command) -> bool:
    """Return whether the `-k` argument of a command selects any tests."""
    look = [
        "--collect-only",
        "--override-ini=addopts=",
        "--import-mode=importlib",
        "-pno:cacheprovider",
        "-pno:unraisableexception",  # the plugin collects garbage, which is slow here
    ]
    with contextlib.redirect_stdout(io.StringIO()):
        status = pytest.main([*look, "-k", command.selection, str(ROOT / command.folder)])
    return status == pytest.ExitCode.OK


@pytest.mark.parametrize("path", DOCUMENTS, ids=[str(p.relative_to(ROOT)) for p in DOCUMENTS])
def test_blocks_of_commands_are_marked_as_bash_console_or_text(path: Path) -> None:
    in_file = blocks(path.read_text(encoding="utf-8"))
    unclear = [n for n, language, _ in in_file if language in ("", "sh", "shell", "zsh")]
    assert not unclear, f"lines {unclear}: write ```bash (run by the tests), ```console or ```text"


def test_make_targets_call_existing_commands() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    apps = [app, *(group.typer_instance for group in app.registered_groups)]
    commands = [c for each in apps if each is not None for c in each.registered_commands]
    known = {c.name or getattr(c.callback, "__name__", "") for c in commands}
    for target in re.findall(r"^([a-z]+):.*## ", makefile, re.MULTILINE):
        for line in make_commands(f"make {target}"):
            if called := re.match(r"uv run grader (?:author )?(\w+)", line):
                assert called[1] in known, f"make {target} calls '{line}'"
