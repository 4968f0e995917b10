"""A submission cannot send data about hidden tests to its student.

Each submission is graded in a sandbox, and the feedback and the gradebook are written. As a
control, the instructor runs the hidden test again and can read the data.
"""

import re
import sys

import pytest

from grader.grade.recorded import RecordedTests
from grader.grade.settings import Settings
from grader.intake.handed_in import StudentFile, Submission
from grader.reports.gradebook_csv import write_gradebook
from grader.result import Policy
from grader.run.session import Session
from grader.run.suite import Suite
from tests.results import feedback_text

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is for Linux"),
]

SHY = [policy for policy in Policy if policy is not Policy.FULL]

# `word` returns a single word that contains all numbers of an argument.
COMMON = """
import sys, warnings
import torch

def word(x):
    return "seen" + "".join(f"_{abs(int(n * 1e9))}" for n in x.flatten().tolist())

def named(name, base, text):
    return type(name, (base,), {})(text)
"""

# Maps each way to leak an input to (body of double(x), whether the instructor can read the input).
WAYS = {
    "the text of an exception": ("raise ValueError(word(x))", True),
    "a cause": ("raise ValueError(word(x)) from KeyError(word(x))", True),
    "a note": ("e = ValueError(word(x)); e.add_note(word(x)); raise e", True),
    "the name of an exception class": ("raise named(word(x), Exception, '')", True),
    "an assertion": ("assert False, word(x)", True),
    "an unimplemented function": ("raise NotImplementedError(word(x))", False),
    "a missing attribute": ("raise AttributeError(word(x), name=word(x), obj=sys)", True),
    "a syntax error": ("exec(word(x) + ' !')", False),
    "a name in the traceback": (
        "exec(f'def {word(x)}(): raise ValueError', globals()); globals()[word(x)]()",
        True,
    ),
    "the name of a returned class": ("return type(word(x), (), {})", False),
    "a returned text": ("return word(x)", False),
    "a returned object": ("return type(word(x), (), {})()", True),
    "returned numbers": ("return x * 3", True),
    "a wrong shape": ("return x.repeat(2)", False),
    "printed text": ("print(word(x)); print(word(x), file=sys.stderr); return x", False),
    "a warning": ("warnings.warn(word(x)); return x", False),
    "a warning that is an error": (
        "warnings.simplefilter('error'); warnings.warn(word(x)); return x",
        True,
    ),
    "the module's docstring": ("globals()['__doc__'] = word(x); return x", False),
    "a returned set": ("return {word(x)}", False),
    "the end of the process": ("print(word(x), flush=True); import os; os._exit(7)", False),
}


def file(body):
    return StudentFile(f"{COMMON}\ndef double(x):\n    {body}\n".encode())


@pytest.fixture(scope="module")
def instructors_output(grade):
    """Return a function that runs the hidden test for an instructor and returns its message."""
    suite = Suite(grade.course.problems(), grade.course.root, timeout=100)
    tests = RecordedTests(suite.tests, grade.sandbox, quotes_hidden=True)

    def run(body):
        session = Session(None, hidden=True, seed=Settings().seed, diagnose=False)
        (problem,) = grade.course.problems()
        tests.run(session, problem, file(body), grade.sandbox.budget())
        return hidden_test(session.results[problem.id]).message

    return run


def hidden_lines(course):
    """Return the lines of the hidden tests, which no student may read."""
    text = course.problems()[0].test_file.read_text()
    hidden = text.partition("# --- hidden tests ---")[2]
    lines = {line.strip() for line in hidden.splitlines() if len(line.strip()) > 8}
    return lines - {'"""double is right for other numbers"""'}


@pytest.fixture(scope="module")
def inputs(instructors_output):
    """Return the first digits of the hidden inputs, read from the message of a submission."""
    body, _ = WAYS["the text of an exception"]
    found = beginnings(instructors_output(body))
    assert len(found) == 3
    return found


@pytest.mark.parametrize("name", WAYS)
def test_leaked_data_reaches_only_the_instructor(instructors_output, grade, inputs, tmp_path, name):
    body, instructor_reads = WAYS[name]
    result = grade.result(Submission("ada", {"01-doubling": file(body)}))
    assert hidden_test(result.problems[0]).points == 0
    visible = " ".join(t.message for t in result.problems[0].tests if not t.hidden)
    read = beginnings(instructors_output(body))
    secret = inputs | (read - beginnings(visible))
    if instructor_reads:
        assert read & secret, "the instructor can't read the data either"
    write_gradebook([result], ["01-doubling"], tmp_path / "gradebook.csv")
    gradebook = (tmp_path / "gradebook.csv").read_text()
    for text in [gradebook, *(feedback_text(result, policy) for policy in SHY)]:
        assert not [digits for digits in secret if digits in plain(text)]
        assert not [line for line in hidden_lines(grade.course) if line in text]


def hidden_test(result):
    (found,) = [test for test in result.tests if test.hidden]
    return found


def plain(text):
    """Remove the decimal points and the leading zeros of the numbers in a text."""
    return re.sub(r"\b0\.0*", "", text).replace(".", "")


def beginnings(text):
    """Return the first five digits of each number that has at least five digits."""
    return {digits[:5] for digits in re.findall(r"\d+", plain(text)) if len(digits) >= 5}
