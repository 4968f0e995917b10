"""Evidence from all sources is shown in one list without repetitions, the most certain first."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import pytest
import torch

from grader.course import Course
from grader.diagnose.answers import answer_of
from grader.diagnose.diff_hint import diff_hints
from grader.diagnose.evidence import Certainty, Evidence, Source, ranked
from grader.diagnose.fingerprints import Fingerprints, KnownMistake, Text
from grader.diagnose.probe import Answers
from grader.result import ProblemResult, Status
from grader.run.mistakes_made import FITS
from grader.student.report import failure_report
from grader.student.seen import reading
from tests.catalogue import reference

ResultOf = Callable[..., ProblemResult]

ROWS_SUM = Evidence("Each column sums to 1.", Certainty.SOME, Source.NUMBERS)
SWAPPED = Evidence("Two dimensions are swapped.", Certainty.ALL, Source.RELATION)
NAME = Evidence("It looks as if f ...", Certainty.ALL, Source.CATALOGUE, ("F: loss",), ("f",))
OF_G = Evidence("It looks as if g ...", Certainty.ALL, Source.CATALOGUE, ("g",), ("g",))
LACKS = Evidence("`a` is missing.", Certainty.SEEN, Source.MISSING, ("F",))
PARAMETER = Evidence("`a` is a Parameter.", Certainty.SEEN, Source.PARTS, ("F",))


@pytest.mark.parametrize(
    ("evidence", "expected"),
    [
        ([ROWS_SUM, SWAPPED], [SWAPPED]),  # SWAPPED also explains the wrong sums
        ([NAME, NAME, OF_G], [NAME, OF_G]),
        ([NAME, OF_G, LACKS], [LACKS, OF_G]),  # the missing layer of F may explain NAME
        ([NAME, PARAMETER], [PARAMETER, NAME]),
        ([PARAMETER, LACKS, NAME], [PARAMETER, NAME]),  # both report the same layer
        ([NAME, ROWS_SUM], [NAME, ROWS_SUM]),
        ([], []),
    ],
)
def test_the_most_certain_evidence_comes_first_without_repetition(
    evidence: list[Evidence], expected: list[Evidence]
) -> None:
    assert ranked(evidence) == expected


def test_evidence_that_explains_all_numbers_is_shown_alone() -> None:
    right = torch.tensor([[3.0, 1, 2, 4], [2, 0, 1, 3], [7, 1, 0, 2], [5, 3, 1, 0]]).double()
    right = right.softmax(-1).numpy()
    (only,) = diff_hints(right.T, right, right != right.T, {})
    assert only.sentence == "It is the right answer with its last two dimensions swapped."


@pytest.mark.parametrize("hidden", [0.0, -math.inf])
def test_a_wrong_order_of_a_mask_is_never_certain(hidden: float) -> None:
    shown = 1.0 if hidden == 0 else 0.0
    mask = torch.full((4, 4), hidden).double().fill_diagonal_(shown).numpy()
    other = mask[:, ::-1].copy()
    assert not [e for e in diff_hints(other, mask, other != mask, {}) if "order" in e.sentence]


@pytest.fixture
def result_of(at_home: Callable[..., ProblemResult]) -> ResultOf:
    """Return a function that edits a problem's reference and runs the problem's visible tests.

    An edit is an (old text, new text) pair. The function runs all visible tests, unless its
    argument `tests` names some of them.
    """

    def edited(number: str, *edits: tuple[str, str], tests: Iterable[str] = ()) -> ProblemResult:
        text = reference(number)
        for old, new in edits:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        return at_home(number, text, hidden=False, diagnose=True, tests=tests)

    return edited


LAYER = "self.{0} = nn.Linear(n_embd, n_embd, bias=bias)"
BARE = "self.{0} = nn.Parameter(torch.rand(n_embd, n_embd))"
LAYERS = ("query", "key", "value")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("edits", "sentence"),
    [
        (
            [
                *((LAYER.format(name), BARE.format(name)) for name in LAYERS),
                (
                    "attention(self.query(x), self.key(x), self.value(x))",
                    "attention(x @ self.query, x @ self.key, x @ self.value)",
                ),
            ],
            "`query` of SimpleAttention is a Parameter; it should be nn.Linear(6, 6, bias=True).",
        ),
        (
            [
                *((LAYER.format(name), LAYER.format(f"W_{name}")) for name in LAYERS),
                (
                    "attention(self.query(x), self.key(x), self.value(x))",
                    "attention(self.W_query(x), self.W_key(x), self.W_value(x))",
                ),
            ],
            "SimpleAttention has no layer called `query`.",
        ),
    ],
)
def test_a_tests_sentence_about_parts_comes_before_names(
    edits: list[tuple[str, str]], sentence: str, result_of: ResultOf
) -> None:
    result = result_of("02", *edits)
    assert result.diagnoses[0].startswith(sentence)
    assert result.mistakes[0] == []  # no known mistake of the class is named
    report = failure_report(result, width=200)
    assert report.count(sentence) == 1
    assert "looks as if" not in report.partition(sentence)[0]


ASSERTED = (
    """        if n_head < 1 or n_embd % n_head != 0:
            raise ValueError(f"n_head must be at least 1 and divide n_embd={n_embd}, not {n_head}")
""",
    "        assert n_head >= 1 and n_embd % n_head == 0\n",
)
BY_N_EMBD = ("math.sqrt(q.shape[-1])", "math.sqrt(q.shape[-1] * q.shape[1])")
LOSS_SUMMED = ("ignore_index=-100)", "ignore_index=-100, reduction='sum')")
HEADS_MIXED = ("y.transpose(1, 2).flatten(2)", "y.reshape(x.shape)")
AS_NUMBERS = (
    "causal_mask(n_positions), persistent",
    "torch.zeros(n_positions, n_positions).masked_fill(~causal_mask(n_positions), -math.inf), "
    "persistent",
)
FLOAT_HEADS = ("self.head_dim = n_embd // n_head", "self.head_dim = n_embd / n_head")
BIASED = ("c_proj = nn.Linear(n_embd, n_embd, bias=bias)", "c_proj = nn.Linear(n_embd, n_embd)")
AS_BOOLS = ("self.mask[:T, :T])", "self.mask[:T, :T].bool())")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "edits", "failure", "question"),
    [
        ("05", [ASSERTED, BY_N_EMBD], "The scores behind these weights", "How many products"),
        ("05", [ASSERTED], "It raised AssertionError", "Which exception should"),
        ("07", [LOSS_SUMMED, HEADS_MIXED], "the loss of GPT", "Should a longer text"),
        ("04", [AS_NUMBERS, AS_BOOLS], "the buffer mask", "which values should the buffer contain"),
    ],
)
def test_a_question_is_about_the_failure_above_it(
    number: str, edits: list[tuple[str, str]], failure: str, question: str, result_of: ResultOf
) -> None:
    result = result_of(number, *edits)
    read = reading(result, [])
    assert question in read.nudge
    assert failure in failure_report(result, reading=read, width=1000)


@pytest.mark.slow
def test_a_mistake_is_shown_only_with_failures_that_it_explains(result_of: ResultOf) -> None:
    never_masked = ("attention_weights(q, k, self.causal)", "attention_weights(q, k, False)")
    never_dropped = (
        "self.resid_dropout(self.c_proj(merge_heads(weights @ v)))",
        "self.c_proj(merge_heads(weights @ v))",
    )
    weights_kept = ("weights = self.attn_dropout(attention", "weights = (attention")
    result = result_of("05", never_masked, never_dropped, weights_kept)
    assert {"mask_not_applied"} <= {name for names in result.mistakes for name in names}
    named = {test.name for test in result.tests if "dropout_none" in test.diagnosis}
    assert named == {"test_dropout_in_training"}


@pytest.mark.slow
def test_a_failure_about_an_attribute_has_the_mistake_about_it(result_of: ResultOf) -> None:
    result = result_of("05", FLOAT_HEADS, BIASED)
    about = [test for test in result.tests if "head_dim = " in test.message]
    assert about[0].diagnosis == ("sizes_float",)
    others = [test for test in result.tests if test.is_wrong and not test.diagnosis]
    assert others
    assert not [test for test in others if FITS in test.message]


@pytest.mark.slow
def test_lost_digits_are_not_explained_by_a_mistake_in_other_digits(result_of: ResultOf) -> None:
    attention = "F.scaled_dot_product_attention(q, k, v, attn_mask=mask"
    rounded_scale = f"{attention}, scale=torch.tensor(q.shape[-1]).rsqrt().item())"
    returned = "return self.c_proj(merge_heads(y)), "
    only_new = "(k[:, :, -x.shape[1] :], v[:, :, -x.shape[1] :])"
    edits = [(f"{attention})", rounded_scale), (f"{returned}(k, v)", f"{returned}{only_new}")]
    result = result_of("09", *edits)
    assert ["present_only_new"] in result.mistakes
    lost = [test for test in result.tests if "last digits" in test.message]
    assert lost
    assert not [test for test in lost if "present_only_new" in test.diagnosis]


TWO_SIDES = """
import torch

from grader.diagnose.probe import Part


def probe(problem):
    whole = torch.tensor([3])
    return {
        "double": Part(main={"three": lambda: problem.double(torch.tensor([3.0]))}),
        "double: whole": Part({}, {"dtype": lambda: problem.double(whole).is_floating_point()}),
    }
"""
TRIPLED_AS_FLOATS = "def double(x): return 3 * x if x.is_floating_point() else 2.0 * x"


@pytest.mark.parametrize(("caught_by", "names"), [("", []), ("test_doubles[1]", ["as_floats"])])
def test_a_mistake_of_hidden_tests_explains_no_visible_failure(
    caught_by: str, names: list[str], small_course: Course, run: Callable[..., ProblemResult]
) -> None:
    (problem,) = small_course.problems()
    problem.probe_file.write_text(TWO_SIDES, encoding="utf-8")
    right, yes, six = (answer_of(value) for value in (False, True, torch.tensor([6.0])))
    reference = {
        "double": Answers({"three": six}, {}),
        "double: whole": Answers({}, {"dtype": right}),
    }
    mistake = KnownMistake(
        "as_floats", {"double: whole": Answers({}, {"dtype": yes})}, "", caught_by
    )
    texts = {"as_floats": Text("whole numbers become floats", "Which dtype is 2.0 * x?")}
    Fingerprints(reference, (mistake,), texts).save(problem.fingerprints)
    result = run(TRIPLED_AS_FLOATS, hidden=False)
    assert result.mistakes == [["as_floats"]]
    assert [*result.tests[0].diagnosis] == names


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "edits", "false"),
    [
        ("04", [AS_NUMBERS, AS_BOOLS], "causal_mask is True"),
        ("09", [("numbers = 2 * n_layer", "numbers = 4 * n_layer")], "grows with seq_len²"),
    ],
)
def test_a_name_does_not_contradict_passed_tests(
    number: str, edits: list[tuple[str, str]], false: str, result_of: ResultOf
) -> None:
    result = result_of(number, *edits)
    assert not any(false in sentence for sentence in result.diagnoses)


@pytest.mark.slow
def test_a_mistake_whose_tests_were_not_selected_explains_no_failure(result_of: ResultOf) -> None:
    """In problem 05, dropout is the last step. Only tests of earlier steps run."""
    without_dropout = [
        ("self.attn_dropout(attention_weights(q, k, self.causal))",
         "attention_weights(q, k, self.causal)"),
        ("self.resid_dropout(self.c_proj(merge_heads(weights @ v)))",
         "self.c_proj(merge_heads(weights @ (v.bool() if self.causal else v)))"),
    ]  # fmt: skip
    result = result_of("05", *without_dropout, tests=("test_future_is_hidden",))
    message = reading(result, ())
    assert "dropout" not in f"{message.nudge} {message.sentences}"


@pytest.mark.slow
def test_a_factor_of_several_numbers_is_shown_first(result_of: ResultOf) -> None:
    edit = ("ignore_index=-100)\n        return", "ignore_index=-100) / len(idx)\n        return")
    report = failure_report(result_of("07", edit), width=1000)
    assert "It is 1/2 times what it should be, and 1/4 times in another test." in report


OUTPUT = "return self.resid_dropout(self.c_proj(merge_heads(weights @ v)))"
BY_RATE = (
    OUTPUT,
    """p = self.resid_dropout.p if self.training else 0
        return ((1 - p) / p if p else 1) * self.resid_dropout(self.c_proj(merge_heads(weights @ v)))
""",
)
DIVIDED_BY_0 = (
    OUTPUT,
    """y = self.c_proj(merge_heads(weights @ v))
        return self.resid_dropout(y / self.resid_dropout(torch.ones_like(y)))
""",
)


WEIGHTS_BY_RATE = (
    "weights = self.attn_dropout(attention_weights(q, k, self.causal))",
    """p = self.attn_dropout.p if self.training else 0
        weights = attention_weights(q, k, self.causal)
        weights = weights * (torch.rand_like(weights) >= p) / p if p else weights
""",
)
GATHERED = (
    "    return logits.masked_fill(dropped, -math.inf)",
    "    return largest_first.masked_fill(before >= p, -math.inf).gather(-1, order)",
)
BEYOND_THE_END = (
    "        return logits\n    largest_first",
    """        return logits.gather(-1, torch.full_like(logits, logits.shape[-1]).long())
    largest_first""",
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "edit", "sentence"),
    [
        ("05", BY_RATE, " is 4. Without dropout, all entries are between 1 and "),
        ("05", WEIGHTS_BY_RATE, "each kept weight is 4 times as large as without dropout"),
        ("05", DIVIDED_BY_0, "of the entries are NaN or infinite"),
        (
            "06",
            ("x + self.mlp(self.ln_2(x))", "x + 0.5 * self.mlp(self.ln_2(x))"),
            "The part that is added to x is 0.5 times what it should be.",
        ),
        (
            "10",
            ("return total / count", "return math.exp(total / count)"),
            "It is exp of what it should be.",
        ),
        (
            "10",
            ("return total / count", "return total / count / math.log(2)"),
            "It is 1/ln 2 = 1.443 times what it should be.",
        ),
        ("08", GATHERED, "All numbers are right, but in the wrong order."),
        ("08", BEYOND_THE_END, "p is 1.0"),
    ],
)
def test_relations_of_numbers_are_reported(
    number: str, edit: tuple[str, str], sentence: str, result_of: ResultOf
) -> None:
    result = result_of(number, edit)
    assert any(sentence in test.message for test in result.tests)


@pytest.mark.slow
def test_one_mistake_is_reported_once(result_of: ResultOf) -> None:
    edit = ("q @ k.mT / math.sqrt(q.shape[-1])", "q @ k.mT / q.shape[-1]")
    result = result_of("03", edit)
    failed = [test for test in result.tests if test.status is Status.FAILED]
    detailed = [test for test in failed if "\n" in test.message]
    assert len(failed) > 30
    assert "differ:\n  row [0]: got" in detailed[0].message
    # Only one message shows rows of numbers. A message of one line refers to the named mistake.
    assert all(test.message.endswith(FITS) for test in failed if test not in detailed)
    assert len([test for test in detailed if "got      [" in test.message]) == 1
