"""Invalid results of a previous run are reported and graded again."""

from __future__ import annotations

import errno
import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from grader.cli_instructor import app
from grader.course import Course
from grader.errors import UsageError
from grader.grade.previous import load_previous, read_result, save_result
from grader.reports.class_table import about_run
from tests.grader.grade.conftest import school_of
from tests.grader.intake.uploads import write as write_files

GONE = object()


def change(*place: str | int, to: object) -> Callable[[Path], None]:
    """Return a function that changes a value in a result's file, or removes it if `to` is GONE."""

    def damage(path: Path) -> None:
        data = part = json.loads(path.read_text())
        for name in place[:-1]:
            part = part[name]
        part[place[-1]] = to
        if to is GONE:
            del part[place[-1]]
        path.write_text(json.dumps(data))

    return damage


def write(text: str | bytes) -> Callable[[Path], None]:
    """Return a function that overwrites a result's file."""
    data = text.encode() if isinstance(text, str) else text
    return lambda path: (path.write_bytes(data), None)[1]


def replace_by_folder(path: Path) -> None:
    path.unlink()
    (path / "inside").mkdir(parents=True)


def replace_by_broken_link(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.with_name("nowhere"))


def replace_by_bobs_result(path: Path) -> None:
    path.write_bytes(path.with_name("bob.json").read_bytes())


TEST = ("problems", 0, "tests", 0)
LEVEL = ("problems", 0, "provenance", "isolation")
DAMAGES = {
    "a text for a number": change(*TEST, "max", to="4"),
    "NaN": change(*TEST, "seconds", to=float("nan")),
    "a number too large to add up": change(*TEST, "max", to=1.7e308),
    "a negative maximum": change(*TEST, "max", to=-4),
    "more points than the maximum": change(*TEST, "points", to=5),
    "a total that is none": change("points", to=3),
    "an unknown status": change(*TEST, "status", to="splendid"),
    "another status of the whole": change("status", to="not_attempted"),
    "a missing key of a problem": change("problems", 0, "provenance", to=GONE),
    "a missing version": change("schema", to=GONE),
    "a key too many": change("bonus", to=10),
    "another name": change("submission", to="bob"),
    "another's result": replace_by_bobs_result,
    "a problem twice": lambda path: repeat_problems(path),
    "an unknown level in the provenance": change(*LEVEL, to="prison"),
    "nesting without end": write("[" * 99_999),
    "a list at the top": write("[]"),
    "half of it": lambda path: path.write_bytes(path.read_bytes()[:-100]),
    "not UTF-8": write(b'{"schema": "\xff"}'),
    "a folder": replace_by_folder,
    "a link to nowhere": replace_by_broken_link,
}


def repeat_problems(path: Path) -> None:
    data = json.loads(path.read_text())
    data["problems"] *= 2
    data["points"], data["max"] = 8, 8
    path.write_text(json.dumps(data))


@pytest.fixture(scope="module")
def results(
    tmp_path_factory: pytest.TempPathFactory, new_course: Callable[[Path], Course]
) -> Iterator[Path]:
    """Grade a class of two students once, and return the folder of results."""
    root = tmp_path_factory.mktemp("graded")
    with pytest.MonkeyPatch.context() as patch:
        made = school_of(new_course(root / "course"), root, patch)
        made.grade()
        yield made.out / "results"


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_result_is_reported(
    results: Path, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    shutil.copytree(results, tmp_path / "results")
    damage(tmp_path / "results/ada.json")
    found = load_previous(tmp_path / "results")
    assert found.damaged.keys() == {"ada"}
    assert found.results.keys() == {"bob"}


AGAIN = ("NaN", "half of it", "a folder", "a link to nowhere")


@pytest.mark.slow
@pytest.mark.parametrize("name", AGAIN)
def test_a_damaged_result_is_graded_again(school: Any, name: str) -> None:
    school.grade()
    whole = json.loads((school.out / "results/ada.json").read_text())
    DAMAGES[name](school.out / "results/ada.json")
    said = school.command()
    assert "results/ada.json is damaged" in said
    assert "results/bob.json" not in said
    assert school.names() == ["ada"]
    assert school.gradebook() == {"ada": "4", "bob": "0"}
    again = json.loads((school.out / "results/ada.json").read_text())
    reason = again["problems"][0].pop("reason")
    whole["problems"][0].pop("reason")
    assert (again, reason) == (whole, "the previous result was damaged")
    assert school.grade().damaged == {}


def test_unreadable_files_count_as_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is simulated, as root may read every file."""

    def refused(path: Path, **options: str) -> str:
        raise PermissionError(errno.EACCES, "Permission denied")

    (tmp_path / "ada.json").touch()
    monkeypatch.setattr(Path, "read_text", refused)
    assert load_previous(tmp_path).damaged == {"ada": "it can't be read: Permission denied"}


@pytest.mark.parametrize("version", [6, 99])
@pytest.mark.parametrize("words", [(), ("--dry-run",), ("--fresh",), ("--only", "ada")])
def test_results_of_a_different_version_are_refused_and_unchanged(
    school: Any, version: int, words: tuple[str, ...]
) -> None:
    school.grade()
    change("schema", to=version)(school.out / "results/ada.json")
    before = contents(school.out)
    said = school.command(*words, status=2)
    assert f"contains results in version {version} of the format" in said
    assert "Grade the submissions again into another folder with --out." in said
    assert contents(school.out) == before


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("command", ["replay", "export"])
def test_no_command_reads_results_of_a_different_version(school: Any, command: str) -> None:
    school.grade()
    change("schema", to=6)(school.out / "results/ada.json")
    list_ = school.out.with_name("list.csv")
    list_.write_text("id,mark\nada,\n")
    words = {
        "replay": [str(school.folder / "ada"), "01/test_doubles", "--reports", str(school.out)],
        "export": ["csv", str(list_), "--reports", str(school.out), "--total", "--id-column", "id"],
    }
    done = CliRunner().invoke(app, [command, *words[command]])
    assert done.exit_code == 2
    assert "results in version 6 of the format" in " ".join(done.output.split())


def test_results_of_unknown_problems_are_unchanged(school: Any) -> None:
    school.grade()
    path = school.out / "results/ada.json"
    result = read_result(path)
    result.problems.append(replace(result.problems[0], id="09-gone", part=""))
    before = save_result(result, path.parent).read_bytes()
    with pytest.raises(UsageError, match=r"that this course does not have \(09-gone\).*--course"):
        school.grade()
    assert path.read_bytes() == before


def test_a_mark_without_a_result_is_reported(school: Any) -> None:
    school.grade()
    (school.out / "results/ada.json").unlink()
    shutil.rmtree(school.folder / "ada")
    run = school.grade()
    assert "changed: ada: 01-doubling 4 -> none (there is no longer a result)" in about_run(run)
    assert "ada in 01: 4 → none" in re.sub("<[^>]+>", "", (school.out / "index.html").read_text())
    assert school.gradebook() == {"bob": "0"}


def test_a_damaged_file_is_kept_next_to_the_new_one(school: Any) -> None:
    school.grade()
    for text in ("first", "second"):
        (school.out / "results/ada.json").write_text(text)
        school.grade()
    kept = {path.name: path.read_text() for path in (school.out / "results").glob("*.damaged*")}
    assert kept == {"ada.json.damaged": "first", "ada.json.damaged-2": "second"}


def test_a_damaged_result_outside_of_the_run_is_reported_and_unchanged(school: Any) -> None:
    school.grade()
    (school.out / "results/bob.json").write_text("{")
    shutil.rmtree(school.folder / "bob")
    for _ in range(2):
        run = school.grade()
        assert school.gradebook() == {"ada": "4"}
        damaged, lost, *_ = (t for t in about_run(run) if not t.startswith("changed"))
        assert damaged.startswith("results/bob.json is damaged and was ignored: ")
        assert (
            lost == "Missing in all reports, because these submissions were not graded again: bob."
        )
    assert (school.out / "results/bob.json").read_text() == "{"


def test_other_files_among_the_results_are_ignored(school: Any) -> None:
    school.grade()
    for name in ("notes.txt", "._ada.json", "ada.json.bak"):
        (school.out / "results" / name).write_text("\x00")
    run = school.grade()
    assert (run.graded, run.damaged) == (0, {})


def test_different_files_in_folders_of_the_same_name_are_reported(school: Any) -> None:
    def replaced(names: str) -> list[str]:
        files = {f"{name}/01-doubling/problem.py": f"# {names}" for name in names.split()}
        section = write_files(school.folder.parent / names, files)
        return [text for text in school.grade(section).messages if "earlier submissions" in text]

    school.grade()
    assert replaced("ada") == []
    (warning,) = replaced("bob ada")
    assert "differ from earlier submissions with the same names: 'ada', 'bob'." in warning
    assert replaced("bob ada") == []
