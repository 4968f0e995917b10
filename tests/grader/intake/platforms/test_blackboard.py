"""Blackboard's downloads: attempts, receipts, and users whose names have underscores."""

from __future__ import annotations

from tests.grader.intake.uploads import COURSE, ID, RIGHT, WRONG, Take, source, zip_file

FIRST, SECOND = "attempt_2024-01-30-20-30-10", "attempt_2024-02-01-08-00-00"


def receipt(name: str, user: str) -> bytes:
    return f"Name: {name} ({user})\nAssignment: Home work\n\nFiles:\n".encode()


def test_blackboard(take: Take) -> None:
    intake = take(
        {
            f"Home_work_ada_{FIRST}.txt": receipt("Ada Lovelace", "ada"),
            f"Home_work_ada_{FIRST}_problem_01.py": WRONG,
            f"Home_work_ada_{SECOND}.txt": receipt("Ada Lovelace", "ada"),
            f"Home_work_ada_{SECOND}_problem_01.py": RIGHT,
            f"Home_work_b_lee_{FIRST}.txt": receipt("王 李", "b_lee"),
            f"Home_work_b_lee_{FIRST}_hw.zip": zip_file(COURSE),
            f"Home_work_c_lee_{FIRST}.txt": receipt("Cho Lee", "c_lee"),
        }
    )
    ada, bea, cho = intake.submissions
    assert [(s.identity, s.full_name, s.members) for s in (ada, bea, cho)] == [
        ("blackboard:ada", "Ada Lovelace", ("ada",)),
        ("blackboard:b_lee", "王 李", ("b_lee",)),
        ("blackboard:c_lee", "Cho Lee", ("c_lee",)),
    ]
    assert [source(s) for s in (ada, bea, cho)] == [RIGHT, RIGHT, None]
    assert ada.notes[0] == "The newest of 2 attempts was read."
    assert intake.recognised == ["Blackboard download: 3 students, 1 file not used."]


def test_without_receipts_nobody_is_another(take: Take) -> None:
    """Whose `lee` is can't be known then; the two stay apart."""
    intake = take(
        {f"hw_b_lee_{FIRST}_problem_01.py": RIGHT, f"hw_c_lee_{FIRST}_problem_01.py": WRONG}
    )
    first, second = intake.submissions
    assert (first.identity, source(first), source(second)) == ("blackboard:lee", RIGHT, WRONG)
    assert second.identity != first.identity
    assert "'blackboard:lee' is there twice" in intake.unmatched[0]


def test_a_files_name_makes_nobody_else_of_it(take: Take) -> None:
    forged = f"x_bob_{SECOND}.txt"
    intake = take(
        {
            f"hw_ada_{FIRST}_{forged}": receipt("Bob", "bob"),
            f"hw_ada_{FIRST}_problem_01.py": RIGHT,
            f"hw_bob_{FIRST}_problem_01.py": RIGHT,
            f"hw_bob_{FIRST}.txt": receipt("Bob (the real) one", "eve"),
        }
    )
    assert [(s.identity, source(s)) for s in intake.submissions] == [
        *(("blackboard:ada", RIGHT), ("blackboard:bob", RIGHT))
    ]


def test_one_problem(take_one: Take) -> None:
    intake = take_one({f"hw_ada_{FIRST}_problem.py": RIGHT, f"hw_bob_{FIRST}_problem.py": WRONG})
    assert [s.files[ID].source for s in intake.submissions] == [RIGHT, WRONG]
