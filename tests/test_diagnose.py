"""Probes and fingerprints: where they stand, and how they are loaded and kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

from grader.course import Course
from grader.testing.diagnose import Fingerprints, ask, load_probe

DATA = {
    "reference": {
        "three": {"dtype": "float32", "shape": [2], "values": [6.0, "nan"]},
        "four": "TypeError",
    },
    "mistakes": {
        "triples": {
            "text": "Your output is what one gets when × is 3.",
            "answers": {"three": {"dtype": "float32", "shape": [2], "values": [9.0, "inf"]}},
        },
        "alike": {"text": "", "answers": {}},
    },
}


def test_fingerprints_have_one_answer_a_line(tmp_path: Path) -> None:
    path = tmp_path / "fingerprints.json"
    Fingerprints(DATA).save(path)
    text = path.read_text(encoding="utf-8")
    assert json.loads(text) == DATA
    assert Fingerprints.load(path).data == DATA
    lines = text.splitlines()
    assert '   "text": "Your output is what one gets when × is 3.",' in lines
    assert '    "three": {"dtype": "float32", "shape": [2], "values": [9.0, "inf"]}' in lines
    assert len(lines) == 18


def test_every_fingerprint_of_the_course_is_as_it_is_written(
    course: Course, tmp_path: Path
) -> None:
    for problem in course.problems():
        Fingerprints.load(problem.fingerprints).save(tmp_path / "again.json")
        assert (tmp_path / "again.json").read_bytes() == problem.fingerprints.read_bytes()


def test_a_problem_without_a_probe_is_asked_nothing(small_course: Course) -> None:
    problem = small_course.problems()[0]
    assert load_probe(problem) is not None
    problem.probe_file.unlink()
    assert load_probe(problem) is None
    assert ask(None, SimpleNamespace(), ()) == {}


def test_a_probe_imports_what_stands_in_its_own_course(
    new_course: Callable[[Path], Course], tmp_path: Path
) -> None:
    problems = []
    for number in (1, 2):
        (problem,) = new_course(tmp_path / str(number)).problems()
        (problem.folder.parent / "shared_numbers.py").write_text(f"NUMBER = {number}\n")
        problem.probe_file.write_text(
            "from shared_numbers import NUMBER\ndef probe(problem): return {'number': NUMBER}\n"
        )
        problems.append(problem)
    for problem in [*problems, *problems]:
        number = int(problem.folder.parents[1].name)
        assert ask(load_probe(problem), SimpleNamespace(), ()) == {"number": number}
