"""PrairieLearn's files: one for each submission of each question."""

from __future__ import annotations

from tests.grader.intake.uploads import ID, OTHER, RIGHT, WRONG, Take, source


def test_prairielearn(take: Take) -> None:
    intake = take(
        {
            "HW1/ada_l@x.edu_1_attention_1_1_77_problem_01.py": WRONG,
            "HW1/ada_l@x.edu_1_attention_2_1_103_problem_01.py": RIGHT,
            "HW1/Bea@x.edu_1_attention_1_1_78_problem_01.py": WRONG,
            "HW1/crew-7_1_attention_1_1_79_problem_01.py": RIGHT,
        }
    )
    assert {s.identity: source(s) for s in intake.submissions} == {
        "prairielearn:ada_l@x.edu": RIGHT,
        "prairielearn:bea@x.edu": WRONG,
        "prairielearn:crew-7": RIGHT,
    }
    assert {s.members for s in intake.submissions} >= {("Bea@x.edu",), ("crew-7",)}
    assert intake.recognised == ["PrairieLearn files: 3 students, 1 file not used."]


def test_a_question_may_tell_the_problem(take_one: Take) -> None:
    files = {
        "ada@x.edu_1_01-doubling_1_1_77_problem.py": RIGHT,
        "ada@x.edu_1_02-tripling_1_1_78_problem.py": WRONG,
    }
    (first,) = take_one(files).submissions
    (second,) = take_one(files, problem="02", name="again").submissions
    assert (first.files[ID].source, second.files[OTHER].source) == (RIGHT, WRONG)
