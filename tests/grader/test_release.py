"""The students' copy works by itself, contains no secret, and can be updated."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from grader.author.documents import beginning_with, without_part
from grader.author.release import code_lines, contents, leaks, release
from grader.course import HIDDEN_MARKER, STUB_LINE, SUBMISSION_FILE, Course, own_course
from grader.diagnose.edits import mistakes_of
from grader.errors import CourseError, UsageError
from grader.run.suite import Suite
from tests.warm import WarmPython

ROOT = own_course().root
CHECK = "from grader.cli import app; app()"

KNOWN = {
    "self.c_attn = nn.Linear(n_embd, 3 * n_embd, bias=bias)",
    "self.c_proj = nn.Linear(n_embd, n_embd, bias=bias)",
    "self.n_embd, self.n_head = n_embd, n_head",
}
"""Lines of the solutions that the provided PyTorch model also contains.

They reveal no more than the READMEs do.
"""

TRIVIAL = 24
"""Lines of at most this length, such as `return weights`, reveal nothing."""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Course]:
    """Release a copy into a folder with a space in its name."""
    folder = tmp_path_factory.mktemp("for students") / "a course"
    release(own_course(), folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "dont_write_bytecode", True)  # as tests check which files exist
        yield Course(folder)


def texts(course: Course) -> dict[str, str]:
    binary = (".png", ".safetensors")
    files = [
        path for path in course.root.rglob("*") if path.is_file() and path.suffix not in binary
    ]
    return {
        path.relative_to(course.root).as_posix(): path.read_text(encoding="utf-8") for path in files
    }


def environment_of(copy: Course) -> dict[str, str]:
    """Return an environment in which Python uses the copy's grader and writes no byte code."""
    variables = {"PYTHONPATH": str(copy.root), "MPLBACKEND": "agg", "PYTHONDONTWRITEBYTECODE": "1"}
    return os.environ | variables


def in_the_copy(copy: Course, folder: str, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command],
        cwd=copy.root / folder,
        env=environment_of(copy),
        capture_output=True,
        text=True,
        encoding="utf-8",
    )


def secrets(source: str, stub_lines: set[str]) -> set[str]:
    """Return the lines of a solution, variant or mistake that the copy must not contain."""
    lines = code_lines(source) - stub_lines - KNOWN
    return {line for line in lines if len(line) > TRIVIAL and not line.startswith("#")}


def signatures(source: str) -> Iterator[str]:
    """Yield the `def` line of each function, without type annotations."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            for argument in ast.walk(node.args):
                if isinstance(argument, ast.arg):
                    argument.annotation = None
            yield f"def {node.name}({ast.unparse(node.args)}):"


@pytest.mark.slow
def test_the_copy_contains_no_solution_and_no_mistake(copy: Course) -> None:
    stub_lines: set[str] = set()
    for problem in copy.problems():
        stub = problem.stub.read_text(encoding="utf-8")
        stub_lines |= code_lines(stub) | {*signatures(stub)}
    copied = {
        name: {line.strip() for line in text.splitlines()} for name, text in texts(copy).items()
    }
    sources = {path: path.read_text(encoding="utf-8") for path in ROOT.glob("solutions/**/*.py")}
    for problem in own_course().problems():
        for mistake in mistakes_of(own_course(), problem):
            sources[Path(problem.id) / mistake.edit.name] = mistake.source
    assert len(sources) > 300
    anywhere = set[str]().union(*copied.values())
    for path, source in sources.items():
        # One of the many mistakes may share a line or two with an oracle of the tests.
        common = 0 if path.name == SUBMISSION_FILE else 2
        possible = {line.strip() for line in source.splitlines()} & anywhere
        if len([line for line in possible - stub_lines - KNOWN if len(line) > TRIVIAL]) <= common:
            continue  # as the exact comparison is slow
        secret = secrets(source, stub_lines) & anywhere
        for name, lines in copied.items():
            assert len(secret & lines) <= common, f"{path} in {name}: {secret & lines}"


def test_the_hidden_halves_are_not_released(copy: Course, tmp_path: Path) -> None:
    release(own_course(), tmp_path / "solved", solutions=True)
    hidden: set[str] = set()
    for problem in own_course().problems():
        _, _, below = problem.test_file.read_text(encoding="utf-8").partition(
            f"\n{HIDDEN_MARKER}\n"
        )
        hidden |= set(re.findall(r"^def (test_\w+)", below, re.MULTILINE))
    assert len(hidden) > 20
    for name, text in (texts(copy) | texts(Course(tmp_path / "solved"))).items():
        assert HIDDEN_MARKER not in text.splitlines(), name
        assert hidden.isdisjoint(re.findall(r"\btest_\w+", text)), name


def test_solutions_are_released_without_secrets_of_hidden_tests(tmp_path: Path) -> None:
    copy = Course(release(own_course(), tmp_path / "solved", ["one"], solutions=True).folder)
    for problem in copy.problems():
        folder = copy.solution(problem).parent
        assert {path.name for path in folder.iterdir()} == {
            "problem.py", "variants", "mistakes.edits", "compare.py"
        }  # fmt: skip
    ids = [problem.id for problem in copy.problems()]
    assert sorted(path.name for path in (copy.root / "solutions").iterdir()) == ids


@pytest.mark.slow
def test_the_copy_contains_only_the_files_of_students(copy: Course) -> None:
    top = {path.name for path in copy.root.iterdir()}
    assert top == {
        ".devcontainer", ".gitattributes", ".gitignore", ".release.json", "AGENTS.md",
        "CHANGELOG.md", "LICENSE", "README.md", "course.toml", "docs", "grader", "grader_data",
        "problems", "pyproject.toml", "uv.lock",
    }  # fmt: skip
    folders = {path.name for path in copy.root.glob("grader/*") if path.is_dir()}
    assert folders == {"code", "diagnose", "run", "student"}
    assert not (copy.root / "grader/cli_instructor.py").exists()
    assert {path.name for path in copy.root.glob("problems/shared/*.py")} >= {"worked_example.py"}
    for problem in copy.problems():
        assert {path.name for path in problem.folder.iterdir()} == {
            "README.md", "hints.md", "more.md", "problem.py", problem.test_file.name, "explore.py",
            "pictures",
        }  # fmt: skip
        data = {path.name for path in (copy.root / "grader_data" / problem.id).iterdir()}
        assert data == {"fingerprints.json", "probe.py", "stub.py"}
    pages = [name for name in texts(copy) if name.startswith("docs/")]
    assert len(pages) == 4
    for text in (texts(copy)[name] for name in ("README.md", "CHANGELOG.md", *pages)):
        assert "grader grade" not in text
    assert not [*copy.root.rglob("salt.txt")]


def test_the_number_of_files_is_limited() -> None:
    assert len(contents(own_course())) <= 210


def test_files_in_students_are_released_unchanged(copy: Course) -> None:
    students = ROOT / "students"
    for path in (*students.glob("*"), *students.glob("docs/**/*")):
        if path.is_file():
            copied = copy.root / path.relative_to(students)
            assert copied.read_bytes() == path.read_bytes()


def test_the_front_page_fits_on_two_screens() -> None:
    page = (ROOT / "students/README.md").read_text(encoding="utf-8")
    assert len(re.findall(r"^.*!\[", page, re.MULTILINE)) == 1
    assert len([word for word in page.split() if re.search(r"\w", word)]) <= 400


def test_the_front_page_describes_the_problems() -> None:
    page = (ROOT / "students/README.md").read_text(encoding="utf-8")
    for problem in own_course().problems():
        entry, (least, most) = problem.entry, problem.entry.minutes
        time = f"{least} to {most}" if least < most else f"{least}"
        row = f"](problems/{problem.id}/README.md) | {entry.difficulty} | {time} |"
        assert f"| [{problem.id[:2]}" in page
        assert row in page, row


def test_corrections_are_fetched_without_losing_work(tmp_path: Path) -> None:
    """The command on the front page works with git's default settings."""
    page = (ROOT / "students/README.md").read_text(encoding="utf-8")
    (fetch,) = re.findall(r"`(git pull[^`]*)`", page)
    config = tmp_path / "config"
    config.write_text("[user]\nname = s\nemail = s@x\n")
    variables = {
        "GIT_CONFIG_GLOBAL": str(config),
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_EDITOR": "false",
    }
    course, clone = tmp_path / "course", tmp_path / "clone"

    def git(command: str, folder: Path) -> None:
        subprocess.run(command.split(), cwd=folder, env=os.environ | variables, check=True)

    def commit(folder: Path, name: str) -> None:
        (folder / name).write_text(name)
        git(f"git add {name}", folder)
        git(f"git commit -qm {name}", folder)

    git("git init -q course", tmp_path)
    commit(course, "README.md")
    git("git clone -q course clone", tmp_path)
    commit(clone, "problem.py")
    commit(course, "correction")
    git(fetch, clone)
    assert (clone / "correction").exists()


@pytest.mark.slow
def test_every_link_in_the_copy_leads_to_a_file(copy: Course) -> None:
    for name, text in texts(copy).items():
        if name.endswith(".md") and not name.startswith("grader/"):
            for link in re.findall(
                r"\]\(([^)#\s]+)", re.sub(r"```.*?```|`[^`]*`", "", text, flags=re.S)
            ):
                if "://" not in link:
                    assert (copy.root / name).parent.joinpath(link).exists(), (name, link)


def toml(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def test_both_project_files_declare_the_same_versions() -> None:
    """With equal versions, students run the packages with which the course is tested."""
    ours, theirs = (toml(folder / "pyproject.toml") for folder in (ROOT, ROOT / "students"))
    assert set(theirs["project"]["dependencies"]) < set(ours["project"]["dependencies"])
    for key in ("name", "version", "requires-python", "license", "entry-points"):
        assert theirs["project"][key] == ours["project"][key], key
    assert theirs["project"]["scripts"] == {"grader": "grader.cli:app"}
    assert ours["project"]["scripts"] == {"grader": "grader.cli_instructor:app"}
    assert theirs["build-system"] == ours["build-system"]
    assert theirs["tool"]["hatch"] == ours["tool"]["hatch"]
    options = [both["tool"]["pytest"]["ini_options"] for both in (theirs, ours)]
    assert options[0]["pythonpath"] == options[1]["pythonpath"]
    assert set(options[0]["addopts"].split()) <= set(options[1]["addopts"].split())


def test_students_install_only_required_packages() -> None:
    packages = {package["name"]: package for package in toml(ROOT / "students/uv.lock")["package"]}
    (asked,) = (p for p in packages.values() if p["source"] == {"editable": "."})
    assert {need["name"] for need in asked["dependencies"]} == {
        "matplotlib", "msgspec", "numpy", "pillow", "pytest", "pytest-timeout", "rich",
        "safetensors", "torch", "typer", "watchfiles",
    }  # fmt: skip
    assert "dev-dependencies" not in asked
    # On Linux, torch installs the packages of CUDA.
    others = {name for name in packages if not name.startswith(("nvidia-", "cuda-", "triton"))}
    assert len(others) <= 45, sorted(others)
    assert not {"distributed", "hypothesis", "mypy", "pytest-xdist", "pyyaml", "ruff"} & others


@pytest.mark.slow
def test_released_modules_import_only_installed_packages(copy: Course) -> None:
    declared = toml(ROOT / "students/pyproject.toml")["project"]["dependencies"]
    installed = {re.split(r"\W", need.replace("-", "_"), maxsplit=1)[0] for need in declared}
    known = sys.stdlib_module_names | installed | {"PIL", "grader"}
    missing = {
        f"{path.relative_to(copy.root)}: {name}"
        for path in copy.root.glob("grader/**/*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        for name in imported_by(node)
        if name.partition(".")[0] not in known or not is_in_copy(copy, name)
    }
    assert not missing


def imported_by(node: ast.stmt) -> list[str]:
    """Return the modules that a statement imports."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) else []


def is_in_copy(copy: Course, name: str) -> bool:
    """Return whether a module is in the copy or belongs to a different package."""
    path = copy.root.joinpath(*name.split("."))
    ours = name.startswith("grader.")
    return not ours or path.is_dir() or path.with_suffix(".py").is_file()


def test_the_small_build_changes_no_file_of_the_copy() -> None:
    """A changed file would conflict with the next release."""
    page = (ROOT / "students/docs/install.md").read_text(encoding="utf-8")
    assert "".join(re.findall(r"```console\n(.*?)```", page, re.S)).splitlines() == [
        "uv venv",
        "uv pip install --torch-backend cpu -e .",
        "echo 'export UV_NO_SYNC=1' >> .venv/bin/activate",
        "source .venv/bin/activate",
    ]


def test_the_dev_container_uses_the_cpu_build(copy: Course) -> None:
    config = json.loads((copy.root / ".devcontainer/devcontainer.json").read_text("utf-8"))
    assert "uv pip install --torch-backend cpu -e ." in config["postCreateCommand"]
    assert config["hostRequirements"]["storage"] == "32gb"


def test_the_copy_has_no_commands_of_instructors(copy: Course) -> None:
    done = in_the_copy(copy, "problems", "-c", CHECK, "--help")
    assert done.returncode == 0, done.stderr
    assert "hint" in done.stdout
    assert "break" in done.stdout
    assert not re.search(r"\b(grade|audit|release|doctor)\b", done.stdout)


@pytest.mark.slow
def test_stubs_score_nothing_and_the_next_step_is_shown(
    copy: Course, warm_python: WarmPython
) -> None:
    folder, environment = copy.root / "problems/01-softmax", environment_of(copy)
    done = warm_python.run("-c", CHECK, cwd=folder, env=environment)
    assert done.returncode == 1, done.stderr
    assert "0 of 60 points in the visible tests." in done.stdout
    assert "01-softmax: Next: dot_product_similarity" in done.stdout
    assert "For the details: uv run pytest" in done.stdout


@pytest.mark.slow
def test_pytest_and_explore_work_in_the_copy(copy: Course, warm_python: WarmPython) -> None:
    folder, environment = copy.root / "problems/02-basic-attention", environment_of(copy)
    tested = warm_python.run("-m", "pytest", cwd=folder, env=environment)
    assert tested.returncode == 1
    assert "\n0 of 9 points." in tested.stdout
    drawn = warm_python.run("explore.py", cwd=folder, env=environment)
    assert drawn.returncode == 0, drawn.stderr
    assert "SimpleAttention: yours is not written yet" in drawn.stdout


@pytest.mark.slow
def test_the_visible_tests_have_the_promised_points(copy: Course) -> None:
    tests = Suite(copy.problems(), copy.root).tests
    assert {test.problem.id for test in tests} == {problem.id for problem in copy.problems()}
    of_one = [test.points for test in tests if test.problem.part.id == "one"]
    assert sum(of_one) == pytest.approx(60)


# Updating a copy


@pytest.fixture
def course(tmp_path: Path) -> Course:
    """Copy the course without its solutions, so that a test can change it."""
    root = tmp_path / "instructor"
    for name in ("problems", "students"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("LICENSE", "course.toml", "docs/robust.md"):
        (root / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, root / name)
    return Course(root)


@pytest.fixture
def of_two_parts(two_parts: Course) -> Course:
    """Add all files that students receive to the course of two parts."""
    shutil.copytree(ROOT / "students", two_parts.root / "students")
    shutil.copy(ROOT / "LICENSE", two_parts.root)
    readme = two_parts.problems()[0].folder / "README.md"
    with readme.open("a", encoding="utf-8") as file:
        file.write("\n## Next step\n\n[Part two](../06-doubling/README.md) goes on.\n")
    shared = two_parts.root / "problems"
    (shared / "worked_example.py").write_text("# for all\n")
    (shared / "small_gpt.py").write_text("from worked_example import one\n")
    with (shared / "06-doubling/probe.py").open("a", encoding="utf-8") as file:
        file.write("import small_gpt\n")
    return two_parts


def names_in(folder: Path) -> set[str]:
    return {path.name for path in (folder / "problems").iterdir()}


@pytest.mark.slow
def test_a_new_copy_has_both_parts_by_default(of_two_parts: Course, tmp_path: Path) -> None:
    both = release(of_two_parts, tmp_path / "both")
    assert "part one and part two" in both.summary()
    assert names_in(both.folder) >= {"01-doubling", "06-doubling", "07-doubling", "small_gpt.py"}
    two = release(of_two_parts, tmp_path / "two", ["two"])
    assert names_in(two.folder) == {
        "06-doubling", "07-doubling", "shared", "small_gpt.py", "worked_example.py"
    }  # fmt: skip


@pytest.mark.slow
def test_an_update_keeps_the_parts_of_the_copy(of_two_parts: Course, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    release(of_two_parts, copy, ["one"])
    again = release(of_two_parts, copy)
    assert (again.written, again.removed) == ([], [])
    release(of_two_parts, copy, ["one", "two"])
    assert "06-doubling" in names_in(copy)
    (copy / "problems/07-doubling/problem.py").write_text("# my work\n")
    done = release(of_two_parts, copy, ["one"])
    assert done.kept == ["problems/07-doubling/problem.py"]
    assert [path.name for path in (copy / "problems/07-doubling").iterdir()] == ["problem.py"]
    assert [problem.id for problem in Course(copy).problems()] == ["01-doubling"]
    assert not (copy / "problems/06-doubling").exists()  # it contained no work of the student


@pytest.mark.slow
def test_an_update_keeps_the_students_other_files(of_two_parts: Course, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    release(of_two_parts, copy, notebooks=True, url="https://example.org/us/course")
    again = release(of_two_parts, copy)
    assert (again.written, again.removed) == ([], [])
    assert "https://example.org/us/course" in (copy / "README.md").read_text(encoding="utf-8")
    manifest = copy / ".release.json"
    said = json.loads(manifest.read_text(encoding="utf-8"))
    del said["extras"]  # as in an earlier version
    manifest.write_text(json.dumps(said), encoding="utf-8")
    assert release(of_two_parts, copy).removed == []
    without = release(of_two_parts, copy, notebooks=False)
    assert {Path(path).name for path in without.removed} == {"notebook.ipynb"}


def test_packed_files_of_earlier_versions_are_removed(of_two_parts: Course, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    release(of_two_parts, copy)
    packs = ("problems/01-doubling/.compare.bin", "problems/06-doubling/.practice.bin")
    manifest = copy / ".release.json"
    said = json.loads(manifest.read_text(encoding="utf-8"))
    for pack in packs:
        (copy / pack).write_bytes(b"packed")
        said["files"][pack] = "the hash of another version"
    said["extras"] |= {"compare": True}
    manifest.write_text(json.dumps(said), encoding="utf-8")
    done = release(of_two_parts, copy)
    assert done.removed == [*packs]
    assert not [*copy.rglob("*.bin")]
    assert "but its git history keeps them" in done.summary()


def test_solutions_can_be_added_and_removed(of_two_parts: Course, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    release(of_two_parts, copy, ["one"])
    assert not (copy / "solutions").exists()
    release(of_two_parts, copy, solutions=True)
    solution = copy / "solutions/01-doubling/problem.py"
    assert [path for path in (copy / "solutions").rglob("*") if path.is_file()] == [solution]
    assert release(of_two_parts, copy).removed == []
    done = release(of_two_parts, copy, solutions=False)
    assert not (copy / "solutions").exists()
    assert "but its git history keeps them" in done.summary()


def test_a_problem_without_its_tests_is_reported_as_broken(
    of_two_parts: Course, tmp_path: Path
) -> None:
    copy = Course(release(of_two_parts, tmp_path / "copy").folder)
    for course in (copy, of_two_parts):
        (course.root / "problems/07-doubling/test_doubling.py").unlink()
        with pytest.raises(CourseError, match="07-doubling has no test file"):
            course.problems()


def test_a_copy_of_one_part_does_not_mention_the_other(
    of_two_parts: Course, tmp_path: Path
) -> None:
    one = release(of_two_parts, tmp_path / "one", ["one"]).folder
    assert names_in(one) == {"01-doubling", "shared"}
    for readme in (one / "README.md", one / "problems/01-doubling/README.md"):
        text = readme.read_text(encoding="utf-8")
        assert "06-doubling" not in text
        assert "\n## Part two" not in text
    assert "\n## Part one" in (one / "README.md").read_text(encoding="utf-8")
    changes = (one / "CHANGELOG.md").read_text(encoding="utf-8")
    assert "art two" not in changes
    assert without_part("## New\n\n- Part two.\n\n## Old\n", ["06"], ["two"]) == "## Old\n"
    assert "\nPart two goes on." in (one / "problems/01-doubling/README.md").read_text("utf-8")


def test_a_copy_of_part_two_begins_with_its_first_problem() -> None:
    pages = ("students/README.md", "students/docs/while-you-work.md")
    text = "\n".join((ROOT / page).read_text(encoding="utf-8") for page in pages)
    ids = ["01-softmax", "02-basic-attention", "03-scaled-attention", "04-causal-masking"]
    text = without_part(text, [*ids, "05-multi-head-attention"], ["one"])
    text = beginning_with(text, "01-softmax", "06-transformer-block")
    assert "Begin with `problems/06-transformer-block`" in text
    assert "uv run grader hint 06 2" in text
    assert not re.search(r"\b0[1-5]\b", text)


@pytest.mark.slow
def test_an_update_corrects_files_and_keeps_the_students_work(
    course: Course, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    release(course, copy)
    first, second = course.problems()[:2]
    work = copy / "problems" / first.id / "problem.py"
    work.write_text("# my work\n", encoding="utf-8")
    (copy / "notes.txt").write_text("mine\n", encoding="utf-8")
    for problem in (first, second):
        problem.stub.write_text(f"# corrected\n{STUB_LINE}\n", encoding="utf-8")
    (first.folder / "README.md").write_text("# Corrected\n", encoding="utf-8")
    second.fingerprints.unlink()

    done = release(course, copy)

    assert done.kept == [f"problems/{first.id}/problem.py"]
    assert done.removed == [f"grader_data/{second.id}/fingerprints.json"]
    assert work.read_text(encoding="utf-8") == "# my work\n"
    assert (copy / "notes.txt").read_text(encoding="utf-8") == "mine\n"
    assert (copy / "problems" / first.id / "README.md").read_text("utf-8") == "# Corrected\n"
    untouched = copy / "problems" / second.id
    assert (untouched / "problem.py").read_text("utf-8").startswith("# corrected\n")
    assert not (copy / done.removed[0]).exists()
    again = release(course, copy)
    assert (again.written, again.removed, again.kept) == ([], [], done.kept)


def test_changed_files_of_a_copy_are_never_lost(of_two_parts: Course, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    release(of_two_parts, copy, ["one"], notebooks=True)
    folder = copy / "problems/01-doubling"
    for name in ("problem.py", "README.md", "notebook.ipynb", "test_doubling.py"):
        with (folder / name).open("a", encoding="utf-8") as file:
            file.write("# my work\n")
    problem = of_two_parts.problems()[0]
    with (problem.folder / "README.md").open("a", encoding="utf-8") as file:
        file.write("Corrected.\n")  # also changes the notebook, which is made from the README

    summary = release(of_two_parts, copy).summary().splitlines()

    at = "problems/01-doubling"
    assert summary[1:-1] == [  # the first line is about the front page
        f"written: {at}/README.md",
        f"written: {at}/notebook.ipynb",
        f"backup of a file that was changed in the copy: {at}/README.md.bak-1",
        f"backup of a file that was changed in the copy: {at}/notebook.ipynb.bak-1",
        f"not updated, because it was changed in the copy: {at}/problem.py",
        f"not updated, because it was changed in the copy: {at}/test_doubling.py",
    ]
    assert (folder / "README.md").read_text("utf-8").endswith("Corrected.\n")
    for name in ("problem.py", "README.md.bak-1", "notebook.ipynb.bak-1", "test_doubling.py"):
        assert (folder / name).read_text("utf-8").endswith("# my work\n"), name


@pytest.mark.slow
def test_an_empty_clone_receives_no_byte_code(course: Course, tmp_path: Path) -> None:
    for folder in ("problems/shared", f"problems/{course.problems()[0].id}/pictures"):
        (course.root / folder / "__pycache__").mkdir(exist_ok=True)
        (course.root / folder / "__pycache__/module.pyc").write_bytes(b"")
    (tmp_path / "clone/.git").mkdir(parents=True)
    assert release(course, tmp_path / "clone").new
    assert not [*(tmp_path / "clone").rglob("__pycache__")]


@pytest.mark.parametrize(
    ("file", "text", "why"),
    [
        ("problems/01-softmax/problem.py", "", r"problem\.py is missing"),
        ("problems/01-softmax/problem.py", "# a solution\n", "contains no function to write"),
        ("students/README.md", "", "README.md is missing; a course needs README.md and "),
    ],
)
def test_an_unfinished_course_is_not_released(
    course: Course, tmp_path: Path, file: str, text: str, why: str
) -> None:
    if text:
        (course.root / file).write_text(text, encoding="utf-8")
    else:
        (course.root / file).unlink()
    with pytest.raises(CourseError, match=why):
        release(course, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_a_folder_with_other_content_is_refused(course: Course, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="so it is not a students' copy"):
        release(course, tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="is a file"):
        release(course, tmp_path / "file")


@pytest.mark.slow
@pytest.mark.parametrize("place", [".", "problems", "problems/10-copy", "docs/new/copy"])
def test_a_folder_of_the_course_itself_is_refused(course: Course, place: str) -> None:
    before = {*course.root.rglob("*")}
    with pytest.raises(UsageError, match="is inside the course"):
        release(course, course.root / "grader" / ".." / place)
    assert {*course.root.rglob("*")} == before


@pytest.mark.slow
def test_a_different_course_is_released_with_the_running_grader(
    small_course: Course, tmp_path: Path
) -> None:
    students = small_course.root / "students"
    students.mkdir()
    (students / "README.md").write_text("# Doubling\n")
    shutil.copy(ROOT / "students/pyproject.toml", students)
    summary = release(small_course, tmp_path / "copy").summary()
    assert summary.startswith("students/README.md does not mention 01-doubling.\nThe students'")
    done = in_the_copy(Course(tmp_path / "copy"), "problems/01-doubling", "-c", CHECK, "check")
    assert "0 of 2 points" in done.stdout, done.stderr


def test_secrets_in_a_problem_are_found(small_course: Course) -> None:
    problem = small_course.problems()[0]
    solution = small_course.solution(problem)
    assert list(leaks(problem, solution)) == []
    line = "return torch.add(x, x).to(x.dtype).contiguous()"
    solution.write_text(f"def double(x):\n    {line}\n", encoding="utf-8")
    readme = problem.folder / "README.md"
    readme.write_text(f"See test_hidden.\n\n    {line}\n", encoding="utf-8")
    problem.probe_file.write_text(f"def by_hand(x):\n    {line}\n", encoding="utf-8")
    shared = problem.folder.parent / "worked_example.py"
    shared.write_text(f"# For test_hidden.\n\n{HIDDEN_MARKER}\n", encoding="utf-8")
    problem.fingerprints.write_text('{"reference": {"test_hidden": ""}}\n', encoding="utf-8")
    assert sorted(leaks(problem, solution)) == [
        "the released README.md has a line of the solution: " + line,
        "the released README.md names test_hidden",
        "the released fingerprints.json names test_hidden",
        "the released probe.py has a line of the solution: " + line,
        f"the released worked_example.py has the line {HIDDEN_MARKER}",
        "the released worked_example.py names test_hidden",
    ]
    problem.original.write_text("# a solution\n", encoding="utf-8")
    assert "contains no function to write" in next(leaks(problem, solution))
