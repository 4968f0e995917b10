"""Each row of the roster is matched with the correct submission."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.errors import UsageError
from grader.grade.same_person import as_on_roster
from grader.gradebook.folder import GradebookFolder
from grader.gradebook.lines import read_criteria
from grader.gradebook.roster import Known, Matched, read_roster
from grader.intake.handed_in import Submission
from grader.result import SubmissionResult
from tests.grader.gradebook.built import adjusted, problem, result
from tests.grader.gradebook.platform_files import CLASS, canvas_gradebook, moodle_worksheet


def matched(folder: Path, roster: str | bytes, *known: Known) -> Matched:
    path = folder / "roster.csv"
    path.write_bytes(roster if isinstance(roster, bytes) else roster.encode())
    return read_roster(path).match(known)


def test_a_canvas_gradebook_gives_real_names_by_numbers(folder: Path) -> None:
    squeezed = [Known(f"canvas:{s.id}", s.sortable.lower(), (str(s.id),)) for s in CLASS[:-3]]
    matches = matched(folder, canvas_gradebook(), *squeezed)
    plain = [s for s in CLASS[:-3] if s.first[:1] != "="]
    assert [matches.name(f"canvas:{s.id}") for s in plain] == [s.full_name for s in plain]
    assert matches.section("canvas:1001") == '"Monday", and Tuesday'
    assert len(matches.absent) == 3
    assert not matches.unclear
    assert not matches.strangers


def test_a_moodle_worksheet_is_matched_by_names_and_not_by_numbers(folder: Path) -> None:
    known = [Known(f"moodle:{s.id + 1}", s.full_name) for s in CLASS]
    matches = matched(folder, moodle_worksheet(), *known)
    names = {each: [e.name for e in matches.of[each]] for each in matches.of}
    assert names["moodle:1002"] == ["Ada Lovelace"]
    assert names["moodle:1005"] == ["小文 陳"]
    assert {e.name for e in matches.unclear} == {"Kim Lee"}  # two students have this name
    assert set(matches.strangers) == {"moodle:1016", "moodle:1017"}


def test_a_plain_list_contains_names(folder: Path) -> None:
    roster = '# of the office\n"Lovelace, Ada"\nKim Lee\n'
    matches = matched(folder, roster, Known("Ada Lovelace"))
    assert matches.name("Ada Lovelace") == "Ada Lovelace"
    assert [entry.shown for entry in matches.absent] == ["Kim Lee"]


@pytest.mark.parametrize(
    ("roster", "known", "name"),
    [
        ("name,email\nAda L,Ada@x.edu\n", Known("gradescope:ada@x.edu"), "Ada L"),
        ("name;github_username\nAda L;ada\n", Known("github:Ada"), "Ada L"),
        ("first name\tlast name\tlogin\nAda\tL\tada\n", Known("ada"), "Ada L"),
        ("name,id\nAda L,canvas:7\n", Known("canvas:7", "lada"), "Ada L"),
        ("name,id\nAda L,7\n", Known("canvas:7", "lada"), "Ada L"),
        # A number of one assignment or of another platform does not identify a student.
        ("name,id\nAda L,7\n", Known("moodle:7", "Bo B"), ""),
        ("name,student id\nAda L,7\n", Known("canvas:7", "bbo"), ""),
        ("Student,ID,SIS User ID,Section\nAda L,1,7,\n", Known("canvas:7", "bob"), ""),
        ("Student,ID,Section\nKim Lee,1,\n", Known("canvas:7", "kimlee"), ""),
        ("name,email\nA,x@y\nB,x@y\n", Known("gradescope:x@y"), ""),
        ("name,id\nKim Lee,canvas:8\nKim Lee,canvas:9\n", Known("kim lee"), ""),
    ],
)
def test_a_row_matches_only_its_student(roster: str, known: Known, name: str, folder: Path) -> None:
    assert matched(folder, roster, known).name(known.identity) == name


def test_classroom_50_roster_is_read_without_its_staff(folder: Path) -> None:
    roster = (
        "username,first_name,last_name,email,section,github_id,role\n"
        "ada,Ada,Lovelace,ada@x.edu,Lab 1,17,student\nbea,Bea,B,bea@x.edu,,18,student\n"
        "tim,Tim,T,tim@x.edu,,19,ta\n"
    )
    matches = matched(folder, roster, Known("github:ada", members=("ada",)))
    assert (matches.name("github:ada"), matches.section("github:ada")) == ("Ada Lovelace", "Lab 1")
    assert [entry.shown for entry in matches.absent] == ["Bea B"]


def test_a_group_matches_the_rows_of_all_members(folder: Path) -> None:
    group = Known("gradescope:a@x+b@x", "A and B", ("a@x", "b@x"))
    matches = matched(folder, "name,email,section\nA,a@x,1\nB,b@x,2\nC,c@x,2\n", group)
    assert (matches.name(group.identity), matches.section(group.identity)) == ("", "1, 2")
    assert [entry.shown for entry in matches.absent] == ["C"]
    assert not matched(folder, "name,email\nA,a@x\n", group).name(group.identity)


def test_members_of_a_moodle_group_come_from_the_list_of_participants(folder: Path) -> None:
    (folder / "roster.csv").write_text(
        '"First name","Last name","Email address",Groups\nAda,Lovelace,a@x,"Group One"\n'
        'Kurt,Gödel,k@x,"Group One, Lab 3"\nEmmy,Noether,e@x,"Group Two"\nKim,Lee,l@x,\n',
        encoding="utf-8",
    )
    names = ["Group One", "Group Two", "Kim Lee", "Lab 9"]
    submissions = [
        Submission(name, {}, [], (f"Participant {n}",), identity=f"moodle:{n}", full_name=name)
        for n, name in enumerate(names)
    ]
    renamed = as_on_roster(submissions, read_roster(folder / "roster.csv"))
    assert {submission.identity: submission.members for submission in renamed} == {
        "moodle:a@x+k@x": ("a@x", "k@x"),
        "moodle:e@x": ("e@x",),
        "moodle:2": ("Participant 2",),
        "moodle:3": ("Participant 3",),
    }


def test_a_member_of_two_groups_has_two_rows(folder: Path) -> None:
    first, second = (Known(f"gradescope:a@x+{o}@x", "", ("a@x", f"{o}@x")) for o in "bc")
    matches = matched(folder, "name,email\nA,a@x\nB,b@x\nC,c@x\n", first, second)
    names = {each: [entry.name for entry in matches.of[each]] for each in matches.of}
    assert names == {first.identity: ["A", "B"], second.identity: ["A", "C"]}
    assert not matches.unclear


@pytest.mark.parametrize("content", ["", "a,b\nc,d\n", 'name\n"a'])
def test_a_list_without_students_is_reported(content: str, folder: Path) -> None:
    with pytest.raises(UsageError, match=r"roster\.csv"):
        matched(folder, content)


# Names in other files


def adjusted_lines(folder: Path, name: str, text: str, *results: SubmissionResult) -> list[str]:
    """Return one line with points for each student, followed by the messages."""
    (folder / name).write_text(text, encoding="utf-8")
    graded, messages = adjusted(results, GradebookFolder(folder))
    return [*(f"{r.full_name}: {r.points:g} of {r.max:g}" for r in graded), *messages]


CANVAS = 'Student,ID,SIS Login ID,Section\n"Ruiz, José",7,jruiz,A\n"Lee, Kim",8,klee,A\n'
LATE = "flagged = 0.2\n[extensions]\n"


@pytest.mark.parametrize(
    "name", ["José Ruiz", "Ruiz, José", "josé ruiz", "canvas:7", "jruiz", "JRuiz", "ruizjosé"]
)
def test_an_extension_matches_the_name_on_the_roster(name: str, folder: Path) -> None:
    (folder / "roster.csv").write_text(CANVAS, encoding="utf-8")
    late = problem("03-scaled-attention", 20, 25, late=True)
    jose = result("ruizjosé", late, identity="canvas:7", full_name="ruizjosé")
    line, _ = adjusted_lines(folder, "late.toml", f'{LATE}"{name}" = "2 days"\n', jose)
    assert line == "José Ruiz: 20 of 25"


def test_an_extension_may_precede_the_submission(folder: Path) -> None:
    (folder / "roster.csv").write_text(CANVAS, encoding="utf-8")
    jose = result("ruizjosé", identity="canvas:7")
    text = f'{LATE}"Kim Lee" = "2 days"\n"Kim Leo" = "2 days"\n'
    _, *messages = adjusted_lines(folder, "late.toml", text, jose)
    assert len(messages) == 1
    assert "'Kim Leo'" in messages[0]


GRADESCOPE = "First Name,Last Name,Email\nLi,Wei,li1@x.edu\nDana,Kim,dana@x.edu\n"
NAMESAKE = "Li,Wei,li2@x.edu\n"
LI_WEI = result("li", identity="gradescope:li2@x.edu", full_name="Li Wei")
GROUP = result(
    "li-dana",
    identity="gradescope:li1@x.edu+dana@x.edu",
    full_name="Li Wei + Dana Kim",
    members=("li1@x.edu", "dana@x.edu"),
)


@pytest.mark.parametrize(
    ("roster", "submitted"),
    [
        ("", [GROUP, LI_WEI]),
        (GRADESCOPE + NAMESAKE, [GROUP, LI_WEI]),
        (GRADESCOPE + NAMESAKE, [GROUP]),
        (GRADESCOPE + NAMESAKE, [LI_WEI]),
        (GRADESCOPE + NAMESAKE, []),
    ],
)
def test_a_name_shared_by_two_people_matches_no_one(
    roster: str, submitted: list[SubmissionResult], folder: Path
) -> None:
    if roster:
        (folder / "roster.csv").write_text(roster, encoding="utf-8")
    ada = result("ada", full_name="Ada")
    lines = "submission,problem,mark,reason\nLi Wei,03,3,why\n"
    *marks, message = adjusted_lines(folder, "corrections.csv", lines, ada, *submitted)
    assert marks == [f"{each.full_name}: 20 of 25" for each in (ada, *submitted)]
    assert "line 2, has no effect: 'Li Wei' may refer to " in message
    *_, message = adjusted_lines(
        folder, "late.toml", f'{LATE}"Li Wei" = "2 days"\n', ada, *submitted
    )
    assert "this extension has no effect: 'Li Wei' may refer to " in message


@pytest.mark.parametrize("name", ["Li Wei", "Dana Kim", "dana@x.edu", "Li1@x.edu"])
@pytest.mark.parametrize("roster", ["name\nAda\n", GRADESCOPE])
def test_a_group_is_found_by_each_of_its_members(name: str, roster: str, folder: Path) -> None:
    (folder / "roster.csv").write_text(roster, encoding="utf-8")
    lines = f"submission,problem,mark,reason\n{name},03,3,why\n"
    marks = adjusted_lines(folder, "corrections.csv", lines, GROUP)
    assert marks == ["Li Wei + Dana Kim: 3 of 25"]


# Points by hand

CRITERIA = "submission,problem,criterion,points,max,comment\n"


def test_points_by_hand_have_separate_columns(folder: Path) -> None:
    (folder / "late.toml").write_text("flagged = 0.5\n")
    (folder / "corrections.csv").write_text("submission,problem,mark,reason\nbob,03,10,why\n")
    late = problem("03-scaled-attention", 20, 25, late=True)
    text = f'{CRITERIA}ada,03,Style,4,5,"Clear, but long"\nbob,3,style,"2,5",5,\n'
    marks = adjusted_lines(
        folder, "criteria.csv", text, result("ada", late, full_name="ada"), result("bob")
    )
    assert marks == ["ada: 14 of 30", ": 12.5 of 30"]
    (ada, _), _ = adjusted([result("ada", late), result("bob")], GradebookFolder(folder))
    reasons = [a.reason for a in ada.problems[0].adjustments]
    assert reasons[1] == "Style. Clear, but long"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("ada,03,Style,6,5,", "6 is more than the maximum, 5"),
        ("ada,03,Style,,5,", "its column 'points' is empty"),
        ("ada,03,Style,1,6,", "'Style' is worth 5 in line 2"),
    ],
)
def test_an_invalid_line_ends_the_run(line: str, why: str, folder: Path) -> None:
    (folder / "criteria.csv").write_text(f"{CRITERIA}bob,03,Style,1,5,\n{line}\n")
    with pytest.raises(UsageError, match=f"criteria.csv, line 3: {why}"):
        read_criteria(folder)


def test_students_without_points_by_hand_are_listed(folder: Path) -> None:
    text = f"{CRITERIA}bob,03,Style,1,5,\n"
    ada = result("ada", full_name="Ada L")
    *_, message = adjusted_lines(folder, "criteria.csv", text, ada, result("bob"))
    assert message == ("criteria.csv: no points yet for 'Style' in 03-scaled-attention: Ada L.")


def test_a_gradebook_file_with_a_misspelled_name_is_reported(tmp_path: Path) -> None:
    """The lines of a file with a misspelled name would have no effect."""
    book = GradebookFolder(tmp_path)
    for name in ("late.tml", "Roster.csv", "correction.csv", "names.csv", "notes.md", ".gitignore"):
        (tmp_path / name).touch()
    assert book.files_read() == [f"The book: {tmp_path} (names.csv)."]
    assert [*book.files_unread(tmp_path)] == [
        f"{tmp_path / 'Roster.csv'} is not read: move it to {tmp_path / 'roster.csv'}.",
        f"{tmp_path / 'correction.csv'} is not read: move it to {tmp_path / 'corrections.csv'}.",
        f"{tmp_path / 'late.tml'} is not read: move it to {tmp_path / 'late.toml'}.",
    ]
    for name in ("roster.csv", "corrections.csv", "late.toml"):
        (tmp_path / name).touch()
    assert not [*book.files_unread(tmp_path)]
