"""Downloads of Canvas are read with their names, late files and repeated uploads."""

from __future__ import annotations

from pathlib import Path

from grader.course import Course
from grader.intake.submissions import read_submissions
from tests.grader.intake.uploads import (
    COURSE,
    FILE,
    ID,
    OTHER,
    RIGHT,
    WRONG,
    Take,
    by_name,
    source,
    write,
    zip_file,
)


def test_a_canvas_download_is_read(take: Take) -> None:
    intake = take(
        {
            "hopperada_LATE_12_100_hw.zip": zip_file({f"hw/{n}": c for n, c in COURSE.items()}),
            "lovelace_13_101_01_doubling.py": RIGHT,
            "novak_14_102_problem.py": RIGHT,
            "ortega_15_text.html": b"<p>see below</p>",
            "ortega_15_link.html": b"",
            "anon_aB3dE_103_problem_01.py": RIGHT,
            "lovelace_notes.txt": b"",
        }
    )
    submissions = by_name(intake)
    assert list(submissions) == ["anon aB3dE", "hopperada", "lovelace", "novak", "ortega"]
    assert submissions["hopperada"].late
    assert submissions["hopperada"].notes == ["The submission was late."]
    assert [s.full_name for s in intake.submissions if source(s)] == [
        *("anon aB3dE", "hopperada", "lovelace")
    ]
    assert {name: s.members for name, s in submissions.items()}["lovelace"] == ("13",)
    assert submissions["lovelace"].notes == [f"'01_doubling.py' was read as {ID}."]
    assert "The problem of 'problem.py' is unknown" in submissions["novak"].files[ID].reason
    assert "A link was submitted, which is not graded." in submissions["ortega"].notes
    assert intake.recognised == ["Canvas download: 5 students, 1 late, 4 files not used."]
    assert intake.unmatched == [
        "'lovelace_notes.txt' was not used: it matches no student. Did you mean 'lovelace'?",
        "1 submission has a Python file of an unknown problem. If the submission is for only one "
        f"problem, name the problem, for example with --problem {ID}.",
    ]


def test_anonymous_files_of_canvas_are_read(take: Take) -> None:
    """Canvas writes `late` before `anon` in the names of anonymous files."""
    intake = take(
        {
            "LATE_anon_aB3dE_103_problem_01.py": RIGHT,
            "LATE_anon_77_104_problem_01.py": RIGHT,
            "anon_LATE_x1_105_problem_01.py": RIGHT,
            "anon_Zz9_107_problem_01.py": RIGHT,
            "anon_q_text.html": b"",
        }
    )
    assert intake.recognised == ["Canvas download: 5 students, 3 late, 1 file not used."]
    assert {s.identity: s.files[ID].late for s in intake.submissions if source(s)} == {
        "canvas:aB3dE": True,
        "canvas:77": True,
        "canvas:x1": True,
        "canvas:Zz9": False,
    }
    assert {s.full_name for s in intake.submissions} >= {"anon aB3dE", "anon 77"}


def test_a_number_with_two_names_is_reported(take: Take) -> None:
    intake = take(
        {
            "ada_12_98_problem_01.py": RIGHT,
            "bea_13_99_problem_01.py": RIGHT,
            "cho_14_97_problem_01.py": RIGHT,
            "mallory_14_96_problem_01.py": WRONG,
        }
    )
    whose = {s.identity: source(s) for s in intake.submissions}
    assert (whose["canvas:12"], whose["canvas:13"]) == (RIGHT, RIGHT)
    assert "canvas:14" not in whose
    assert (
        sum("User 14 has several names: 'cho' and 'mallory'" in line for line in intake.unmatched)
        == 1
    )


def test_the_newest_upload_counts(take: Take) -> None:
    """The attachment with the highest number counts, if its problem is known."""
    submissions = by_name(
        take(
            {
                "ada_12_98_problem_01-1.py": RIGHT,
                "ada_12_99_problem_01-2.py": WRONG,
                "ada_12_97_problem_01.py": b"",
                "bea_13_96_problem.py": RIGHT,
                "bea_13_95_problem-1.py": WRONG,
                "cho_14_94_problem_01-3.py": RIGHT,
                "dan_15_92_hw.zip": zip_file({f"{ID}/problem.py": WRONG}),
                "dan_15_93_hw-1.zip": zip_file(COURSE),
                "eli_16_90_part-1.zip": zip_file(COURSE),
                "eli_16_91_part-2.zip": zip_file({FILE: WRONG}),
            }
        )
    )
    assert source(submissions["ada"]) == WRONG
    assert submissions["ada"].notes[0] == (
        "'problem_01-2.py' was read, because it is the newest upload of 'problem_01.py'. "
        "Not read: 'problem_01.py' and 'problem_01-1.py'."
    )
    assert "The problem of 'problem.py' is unknown" in submissions["bea"].files[ID].reason
    assert source(submissions["cho"]) == RIGHT
    assert (
        "'problem_01-3.py' was read as a new upload of 'problem_01.py'"
        in submissions["cho"].notes[0]
    )
    assert source(submissions["dan"]) == RIGHT
    places = f"'part-1.zip/{FILE}', 'part-2.zip/{FILE}'"
    assert f": {places}. Keep only one" in submissions["eli"].files[ID].reason


def test_dates_in_names_are_not_canvas_numbers(tmp_path: Path, small_course: Course) -> None:
    names = ["ada_2024_12_hw.zip", "bea_2024_12_hw.zip"]
    folder = write(tmp_path / "class", {name: zip_file(COURSE) for name in names})
    intake = read_submissions(folder, small_course)
    assert intake.recognised == []
    assert [s.full_name for s in intake.submissions] == ["ada_2024_12_hw", "bea_2024_12_hw"]
    assert all(source(s) == RIGHT for s in intake.submissions)


def test_the_newest_upload_for_the_given_problem_counts(take_one: Take) -> None:
    submissions = by_name(
        take_one(
            {
                "ada_12_98_problem.py": WRONG,
                "ada_12_99_problem-1.py": RIGHT,
                "bea_13_97_problem-2.py": RIGHT,
                "cho_14_96_problem.py": RIGHT,
                "cho_14_95_tripling.py": WRONG,
                "dan_15_94_problem.py": WRONG,
                "dan_15_93_doubling.py": RIGHT,
                "eli_16_92_tripling.py": RIGHT,
                "eli_16_91_tripling-1.py": RIGHT,
            }
        )
    )
    assert [source(s) for s in submissions.values()] == [RIGHT, RIGHT, RIGHT, None, None]
    assert submissions["ada"].notes == [
        "'problem-1.py' was read, because it is the newest upload of 'problem.py'. "
        "Not read: 'problem.py'."
    ]
    assert submissions["bea"].notes == ["'problem-2.py' was read as a new upload of 'problem.py'."]
    assert submissions["cho"].notes == ["Not read: 'tripling.py'."]
    assert (
        "'doubling.py', 'problem.py'. Keep only one of them." in submissions["dan"].files[ID].reason
    )
    assert f"'tripling.py' is for {OTHER}" in submissions["eli"].files[ID].reason
