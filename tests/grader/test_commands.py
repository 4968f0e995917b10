"""Every command in the documents works.

A block that begins with ```bash is run line by line in a copy of the project: from its root, or in
a problem's README from the problem's folder, unless the block begins with `cd problems/`. Commands
in all problems' READMEs are run in the first problem's folder; tests chosen by -k are only
collected. Commands that install something, never end, or use files of the reader are in
blocks that begin with ```console or ```text, which are not run.
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
"""How each part of a command may begin. Anything else might install something, or wait."""

SECONDS = 480
"""How long a command may take before it counts as one that hangs, also on a busy machine."""

OF_MAKE = ("MAKEFLAGS", "MAKEOVERRIDES", "MFLAGS", "MAKELEVEL", "ARGS")
"""What one make tells another through the environment."""

UV = """#!/bin/sh
# Replaces uv: runs a command in the existing environment, off the network.
case "$1" in
    --version) echo "a stand-in for uv" ;;
    run) shift && exec "$@" ;;
    *) echo "the stand-in for uv knows only 'uv run'" >&2 && exit 64 ;;
esac
"""


class Command(NamedTuple):
    """A command and the folder that it runs in, seen from the root."""

    folder: str
    text: str

    def runnable(self) -> bool:
        """Whether the test may run the command."""
        return all(RUNNABLE.match(part.strip()) for part in re.split(r"&&|\|\|?|;", self.text))

    @property
    def chooses(self) -> str:
        """The argument of `pytest -k`, if the command has no other argument."""
        match = re.fullmatch(r"uv run pytest -k (.+)", self.text)
        return shlex.split(match[1])[0] if match else ""

    def may_return(self) -> set[int]:
        """The allowed exit statuses; 1 means that a problem isn't solved yet."""
        unsolved = re.search(r"\bpytest(?! tests)\b|\bgrader( check|$)", self.text)
        return {0, 1} if unsolved else {0}


def blocks(text: str) -> Iterator[tuple[int, str, list[str]]]:
    """Return a document's blocks of code: line number, text after the ```, lines."""
    for match in re.finditer(r"^( *)```([^\n`]*)\n(.*?)^\1```", text, re.MULTILINE | re.DOTALL):
        lines = textwrap.dedent(match[3]).replace("\\\n", " ").splitlines()
        yield text.count("\n", 0, match.start()) + 1, match[2].strip(), lines


def written_commands() -> Iterator[tuple[str, Command]]:
    """Yield every command of the documents, each with its file and line."""
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


def made_by(make: str) -> list[str]:
    """Return the commands that a target of make runs."""
    dry = ["make", "--dry-run", "UV=uv", *shlex.split(make)[1:]]
    # Without variables of the make that runs these tests, such as ARGS, and as a top-level make:
    # a make below another one also prints where it is.
    variables = {name: value for name, value in os.environ.items() if name not in OF_MAKE}
    done = subprocess.run(dry, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
    return [line.strip() for line in done.stdout.splitlines()]


@functools.cache
def ci_commands() -> list[str]:
    """Return the commands that CI runs."""
    lines = (ROOT / ".ci/run").read_text(encoding="utf-8").splitlines()
    return [made for line in lines if line.startswith("make ") for made in made_by(line)]


def runs_in_ci(command: Command) -> bool:
    """Return whether CI runs a command, possibly with more options."""
    return command.folder == "." and any(
        f"{own} ".startswith(f"{command.text} ") for own in ci_commands()
    )


def commands_to_run() -> dict[Command, str]:
    """Return each command once, with its first place."""
    places: dict[Command, str] = {}
    for place, command in written_commands():
        made = made_by(command.text) if command.text.startswith("make ") else []
        plain = bool(made) and all(line.startswith("uv run ") for line in made)
        for each in [Command(".", line) for line in made] if plain else [command]:
            in_problem = each.folder.startswith("problems/") and not each.chooses
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
def test_commands_work(copy: Path, tmp_path: Path) -> None:
    """Each command ends with an allowed status. Two run at a time."""
    (tmp_path / "uv").write_text(UV, encoding="utf-8")
    (tmp_path / "uv").chmod(0o755)
    environment = {
        **os.environ,
        "PATH": os.pathsep.join(
            [str(tmp_path), str(Path(sys.executable).parent), os.environ["PATH"]]
        ),
        # An editable install refers to the original; this tests the copy.
        "PYTHONPATH": str(copy),
    }

    def failure(place: str, command: Command) -> str:
        """Return why a command fails, or an empty string."""
        where = f"{place}: '{command.text}' in {command.folder}"
        if command.chooses:
            return "" if is_any(command) else f"{where} chooses no test"
        if not command.runnable():
            return f"{where} isn't run here: write ```console instead of ```bash"
        status, output = run(command, copy, environment)
        if status is None:
            return f"{where} took more than {SECONDS} s:\n{output}"
        right = status in command.may_return()
        return "" if right else f"{where} returned {status}:\n{output}"

    commands = commands_to_run()
    assert commands
    with ThreadPoolExecutor(2) as pool:
        failures = [*filter(None, pool.map(failure, commands.values(), commands))]
    if failures:
        pytest.fail("\n\n".join(failures), pytrace=False)


def run(command: Command, copy: Path, environment: dict[str, str]) -> tuple[int | None, str]:
    """Run a command; return its exit status and its output. The status is None if it took too
    long.
    """
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
        os.killpg(process.pid, signal.SIGKILL)  # with all that the command started
        return None, process.communicate()[0]
    return process.returncode, output


def is_any(command: Command) -> bool:
    """Return whether a command chooses any tests."""
    look = [
        "--collect-only",
        "--override-ini=addopts=",
        "--import-mode=importlib",
        "-pno:cacheprovider",
        "-pno:unraisableexception",  # which collects garbage, and there is much of it here
    ]
    with contextlib.redirect_stdout(io.StringIO()):
        status = pytest.main([*look, "-k", command.chooses, str(ROOT / command.folder)])
    return status == pytest.ExitCode.OK


@pytest.mark.parametrize("path", DOCUMENTS, ids=[str(p.relative_to(ROOT)) for p in DOCUMENTS])
def test_every_block_is_marked(path: Path) -> None:
    """Each block of commands is marked as bash, console or text."""
    in_file = blocks(path.read_text(encoding="utf-8"))
    unclear = [n for n, language, _ in in_file if language in ("", "sh", "shell", "zsh")]
    assert not unclear, f"lines {unclear}: write ```bash (run by the tests), ```console or ```text"


def test_targets_call_existing_commands() -> None:
    """Each target of the Makefile that calls the grader names one of its commands."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    apps = [app, *(group.typer_instance for group in app.registered_groups)]
    commands = [c for each in apps if each is not None for c in each.registered_commands]
    known = {c.name or getattr(c.callback, "__name__", "") for c in commands}
    for target in re.findall(r"^([a-z]+):.*## ", makefile, re.MULTILINE):
        for line in made_by(f"make {target}"):
            if called := re.match(r"uv run grader (?:author )?(\w+)", line):
                assert called[1] in known, f"make {target} calls '{line}'"
