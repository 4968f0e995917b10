"""The page of the term: what hidden tests cost, which mistakes fall, how well tests sort."""

from __future__ import annotations

from grader.reports.dashboard import dashboard
from grader.reports.statistics import how_tests_sort, recurring, term
from grader.result import ProblemResult, Status, TestResult, not_yet
from tests.results import result_of

FIRST, SECOND = "01-softmax", "02-basic-attention"


def outcome(name: str, max: float, *, ok: bool, hidden: bool = False) -> TestResult:
    status = Status.PASSED if ok else Status.FAILED
    return TestResult(name, f"What {name} asks", hidden, max, status, "" if ok else f"no {name}")


def problem(id: str, seen: int, unseen: int, *mistakes: str) -> ProblemResult:
    """Return a problem with two visible tests and two hidden ones, of which so many passed."""
    tests = [outcome(f"v{n}", 2, ok=n < seen) for n in range(2)]
    tests += [outcome(f"h{n}", 3, ok=n < unseen, hidden=True) for n in range(2)]
    found = ProblemResult(id, "abc", tests)
    found.mistakes = [[name] for name in mistakes]
    found.diagnoses = [f"It looks as if it is {name}. Look there." for name in mistakes]
    return found


def row(page: str, start: str) -> list[str]:
    """Return the cells of the first row of a page that begins so."""
    text = page[page.index(f'<td class="name">{start}') :]
    cells = text[: text.index("</tr>")].split("</td>")
    return [cell.rpartition(">")[2].strip() for cell in cells[:-1]]


def test_what_hidden_tests_cost_those_who_passed_all_visible_ones() -> None:
    results = [
        result_of("ada", problem(FIRST, 2, 2)),
        result_of("bob", problem(FIRST, 2, 1)),
        result_of("eve", problem(FIRST, 1, 0, "odd")),
        result_of("fay", ProblemResult(FIRST, "", [outcome("v0", 2, ok=False)] * 2)),
    ]
    page = term(results, [FIRST, SECOND], {"ada": "A", "bob": "B", "eve": "B"})
    assert row(page, FIRST) == [
        FIRST, "3", "63 %", "83 %", "50 %", "2", "1", "3", "33 %", "100 %", "45 %"
    ]  # fmt: skip
    assert SECOND not in page


def test_mistakes_of_several_weeks_come_first_with_who_made_them_again() -> None:
    results = [
        result_of("ada", problem(FIRST, 1, 0, "wide"), problem(SECOND, 1, 0, "wide")),
        result_of("bob", problem(FIRST, 1, 0, "wide", "odd")),
        result_of("eve", problem(FIRST, 1, 0, "odd"), problem(SECOND, 2, 2)),
    ]
    first, second = recurring(results)
    assert (first.names, dict(first.made)) == ("wide", {FIRST: 2, SECOND: 1})
    assert [person.name for person in first.again] == ["ada"]
    assert first.text == "it is wide"
    assert (second.names, first.effect) == ("odd", None)


def test_a_test_that_the_good_ones_fail_discriminates_backwards() -> None:
    results = []
    for n in range(10):
        tests = [
            outcome("sorts", 1, ok=n > 4),
            outcome("backwards", 1, ok=n < 5),
            outcome("everybody", 1, ok=True),
            outcome("rest", 10, ok=n > 3),
        ]
        results.append(result_of(f"s{n}", ProblemResult(FIRST, "abc", tests)))
    found = {each.title.split()[1]: each for each in how_tests_sort(results)}
    assert (found["sorts"].discrimination or 0) > 0.7
    assert (found["backwards"].discrimination or 0) < -0.5
    assert found["everybody"].discrimination is None
    assert found["sorts"].passed == 0.5
    assert all(each.discrimination is None for each in how_tests_sort(results[:7]))


def test_only_code_that_ran_is_counted() -> None:
    tests = [
        TestResult("v", "What v asks", False, 4, Status.ERROR, why := "bad archive: 'a.rar'"),
        TestResult("h", "What h asks", True, 6, Status.ERROR, not_yet(why)),
    ]
    bob = ProblemResult(FIRST, "", tests)
    results = [result_of("ada", problem(FIRST, 2, 1)), result_of("bob", bob)]
    assert {each.tried for each in how_tests_sort(results)} == {1}
    assert row(term(results, [FIRST]), FIRST)[1] == "1"
    assert not how_tests_sort(results[1:])


def test_both_pages_count_those_who_could_be_judged() -> None:
    """A test that waits for something else to be right says nothing about who it waits for."""
    waiting = TestResult("h", "What h asks", True, 6, Status.FAILED, not_yet("v is wrong"))
    bob = ProblemResult(FIRST, "", [outcome(n, 2, ok=False) for n in "vw"] + [waiting])
    cem = ProblemResult(FIRST, "", [outcome(n, 2, ok=n != "h") for n in "vwh"])
    results = [result_of("bob", bob), result_of("cem", cem)]
    assert [each.tried for each in how_tests_sort(results)] == [2, 2, 1]
    page = dashboard(results, [FIRST])
    assert f"<strong>1 of 1</strong> who tried {FIRST}: What h asks" in page


def test_an_empty_term_has_a_page() -> None:
    assert "Nothing was tried yet" in term([], [])


def test_a_week_without_visible_tests_has_no_share_of_them() -> None:
    tests = [outcome("here", 1, ok=True, hidden=True), outcome("there", 1, ok=False, hidden=True)]
    page = term([result_of("ada", ProblemResult(FIRST, "abc", tests))], [FIRST])
    assert row(page, FIRST)[2:5] == ["50 %", "-", "50 %"]
