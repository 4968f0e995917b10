"""`grader grade` gives some students of the sample class the correct marks and remarks."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from grader.course import COURSE_VARIABLE, MANIFEST, Course, own_course
from grader.gradebook.export.feedback_archive import page_text

pytestmark = pytest.mark.slow

# The expected points of each problem: "all", "none", or "some" if the file has one slip.
# To save time, the students submit no other problems.
EXPECTED = {
    "elif-demir": {"02": "some", "03": "some", "05": "some"},
    "greta-novak": {"01": "all", "02": "all", "03": "all", "4-": "none"},
    "hugo-martin": {"02": "none", "03": "some"},
    "imani-mwangi": {"01": "some"},
    "jonas-weber": {"01": "none", "04": "none"},
}
OF_PART_TWO = {
    "amara-okafor": {"01": "all", "08": "all"},
    "bjorn-lindqvist": {"01": "all", "08": "some"},
}
OMITTED = ("06", "07", "09", "10")
"""Problems that the graded course omits, as grading their references takes seconds."""

HAS_PART_TWO = own_course().problems()[-1].part.id == "two"
if HAS_PART_TWO:
    EXPECTED |= OF_PART_TWO
with_part_two = pytest.mark.skipif(not HAS_PART_TWO, reason="this course has no part two")
REMARKS = {
    "elif-demir": "",
    "greta-novak": "did you mean 04-causal-masking?",
    "hugo-martin": "can't be read as Python: expected ':'",
    "imani-mwangi": "does not end",
    "jonas-weber": "not attempted",
}
# The command itself must not load torch, which takes seconds. Only the pool's processes load it.
RUN = """
import sys
from grader.cli_instructor import app
if __name__ == "__main__":
    try:
        app()
    finally:
        assert "torch" not in sys.modules
"""


def copy_without_omitted_problems(course: Course, root: Path) -> None:
    """Copy a course without the omitted problems."""
    away = [f"{number}-*" for number in OMITTED]
    for name in ("problems", "solutions"):
        ignored = shutil.ignore_patterns("__pycache__", *away)
        shutil.copytree(course.root / name, root / name, ignore=ignored)
    manifest = (course.root / MANIFEST).read_text(encoding="utf-8")
    first, *entries = manifest.split("[[problems]]")
    kept = [each for each in entries if each.split('"')[1][:2] not in OMITTED]
    (root / MANIFEST).write_text("[[problems]]".join([first, *kept]), encoding="utf-8")


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """Return the output of the command and the folder of its reports."""
    folder = tmp_path_factory.mktemp("graded")
    for name, problems in EXPECTED.items():
        for handed_in in (own_course().root / "examples/class" / name).iterdir():
            if handed_in.name[:2] in problems:
                shutil.copytree(handed_in, folder / "class" / name / handed_in.name)
    (folder / "run.py").write_text(RUN, encoding="utf-8")
    copy_without_omitted_problems(own_course(), folder / "course")
    arguments = ["grade", str(folder / "class"), "--out", str(folder / "reports")]
    arguments += ["--timeout", "1", "--jobs", "1"]
    command = [sys.executable, str(folder / "run.py"), *arguments]
    done = subprocess.run(
        command,
        env=os.environ | {COURSE_VARIABLE: str(folder / "course")},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(line.startswith("grading: ") for line in done.stderr.splitlines())
    return done.stdout, folder / "reports"


def test_the_gradebook_has_the_expected_marks(graded: tuple[str, Path]) -> None:
    rows = list(csv.DictReader((graded[1] / "gradebook.csv").open(encoding="utf-8-sig")))
    most = {"01": 10, "02": 15, "03": 25, "04": 25, "05": 25, "06": 25, "07": 40, "08": 15}
    assert {row["submission"] for row in rows} == set(EXPECTED)
    for row in rows:
        expected = EXPECTED[row["submission"]]
        points = {id[:2]: float(row[id]) for id in row if id[:2].isdigit() and row[id]}
        of_one = {number: p for number, p in points.items() if number < "06"}
        assert len(of_one) == 5
        assert points.keys() - of_one.keys() == {n for n in expected if n.isdigit() and n > "05"}
        reached = ["all" if p == most[n] else "some" if p else "none" for n, p in points.items()]
        assert reached == [expected.get(number, "none") for number in points]
        assert float(row["total"]) == pytest.approx(sum(of_one.values()), abs=0.03)
        assert float(row["max"]) == 100


@pytest.mark.parametrize("name", [name for name, remark in REMARKS.items() if remark])
def test_remarks_on_submissions_are_printed(graded: tuple[str, Path], name: str) -> None:
    text = " ".join(graded[0].split())
    assert REMARKS[name] in text[text.index(f"{name}: ") :]


@pytest.mark.parametrize(
    ("name", "problem", "mistake"),
    [
        ("elif-demir", "02-basic-attention", "softmax_over_queries"),
        ("elif-demir", "03-scaled-attention", "no_scale"),
        ("elif-demir", "05-multi-head-attention", "scale_by_n_embd"),
        ("hugo-martin", "03-scaled-attention", "sample_variance"),
    ],
)
def test_mistakes_are_named(
    graded: tuple[str, Path], name: str, problem: str, mistake: str
) -> None:
    data = json.loads((graded[1] / "results" / f"{name}.json").read_text(encoding="utf-8"))
    (result,) = [p for p in data["problems"] if p["id"] == problem]
    assert result["diagnoses"]
    assert any(mistake in test["diagnosis"] for test in result["tests"])
    assert result["diagnoses"][0].split(".")[0] in (
        page_text((graded[1] / "feedback" / f"{name}.html").read_text(encoding="utf-8"))
    )


@with_part_two
def test_part_two_has_a_separate_total(graded: tuple[str, Path]) -> None:
    rows = {
        row["submission"]: (row["part_two_total"], row["part_two_max"])
        for row in csv.DictReader((graded[1] / "gradebook.csv").open(encoding="utf-8-sig"))
    }
    assert rows["amara-okafor"] == ("15", "15")
    assert rows["bjorn-lindqvist"][1] == "15"
    assert rows["elif-demir"] == ("", "")
    feedback = (graded[1] / "feedback/elif-demir.html").read_text(encoding="utf-8")
    assert not any(word in feedback for word in ("art two", "06-", "09-"))
