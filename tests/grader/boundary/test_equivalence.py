"""The same verdict, test by test, in process and across the boundary."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from grader.course import Course, Problem, own_course
from grader.diagnose.edits import mistakes_of
from grader.diagnose.fingerprints import deviations
from grader.diagnose.probe import ask, load_probe
from grader.errors import CannotLoad
from grader.result import TestResult
from grader.run.local_files import LocalFiles
from grader.run.session import Session
from grader.run.suite import Suite
from tests.catalogue import one_case_of_each
from tests.lent import lent_boundary

COURSE = own_course()
BY_CHANCE = "dropout"
"""In the names of mistakes about which chance decides."""


def candidates() -> Iterator[object]:
    """One mistake of each problem, some stubs, and the reference of the first.

    Unwritten functions are alike, and so are modules. All references pass all tests in process,
    which the audit proves, and behind the boundary: so each class that is graded begins, and CI
    grades the sample class.
    """
    for problem in COURSE.problems():
        number = problem.id[:2]
        # Mistakes of 09 are compared below. Tests of 10 pass parameters, which cannot cross.
        kinds = [] if number in ("09", "10") else ["mistake"]
        kinds += ["stub"] if number in ("01", "05", "09") else []
        kinds += ["solution"] if number == "01" else []
        for kind in kinds:
            marks = () if (number, kind) == ("01", "mistake") else pytest.mark.slow
            yield pytest.param(problem, kind, marks=marks, id=f"{problem.id}-{kind}")


def source_of(problem: Problem, kind: str) -> bytes:
    """Return a candidate's source; the mistake is one that changes an argument, if there is any."""
    if kind == "stub":
        return problem.stub.read_bytes()
    if kind == "solution":
        return COURSE.solution(problem).read_bytes()
    wrong = [m for m in mistakes_of(COURSE, problem) if BY_CHANCE not in m.edit.name]
    wrong.sort(key=lambda m: ("change" not in m.edit.name, m.edit.base != "reference"))
    return wrong[0].source.encode()


def verdicts(problem, open_problem, root=COURSE.root, tests=(), suite=None) -> list[TestResult]:
    session = Session(open_problem, hidden=True, diagnose=False)
    suite = suite or Suite([problem], root, timeout=120)
    suite.run(session, [problem], tests)
    return session.results[problem.id].tests


@pytest.mark.parametrize(("problem", "kind"), candidates())
def test_equivalence(sandbox, course_suite, problem, kind, tmp_path):
    opened = {}
    path, source = tmp_path / "problem.py", source_of(problem, kind)
    path.write_bytes(source)

    def remote(problem, forbidden):
        if forbidden not in opened:
            try:
                opened[forbidden] = sandbox.open(source, forbidden)
            except CannotLoad as reason:
                opened[forbidden] = reason
        if isinstance(opened[forbidden], CannotLoad):
            raise opened[forbidden]
        return opened[forbidden]

    tests = one_case_of_each(course_suite)
    local = LocalFiles(lambda problem: path)
    here = verdicts(problem, local, tests=tests, suite=course_suite)
    there = verdicts(problem, remote, tests=tests, suite=course_suite)
    assert [(t.id, t.status.value) for t in there] == [(t.id, t.status.value) for t in here]
    assert all(t.status == "passed" for t in here) == (kind == "solution")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["state_buffer", "text_prompts_changed", "past_grown_in_place"])
def test_equivalence_of_caches(sandbox, course_suite, name, tmp_path):
    """The tests end alike, and so do the questions by which a mistake is named."""
    (problem,) = COURSE.select(["09"])
    path, probe, source = tmp_path / "problem.py", load_probe(problem), mistaken(problem, name)
    path.write_bytes(source)
    files, opened = LocalFiles(lambda _: path), sandbox.open(source)
    try:
        here, there = ask(probe, files(problem)), ask(probe, opened)
        assert deviations(there, here) == {}
        assert there.keys() == here.keys()
        here = verdicts(problem, files, suite=course_suite)
        there = verdicts(problem, lambda *_: opened, suite=course_suite)
    finally:
        opened.close()
    assert [(t.id, t.status.value) for t in there] == [(t.id, t.status.value) for t in here]


def mistaken(problem, name) -> bytes:
    (mistake,) = (m for m in mistakes_of(COURSE, problem) if m.edit.name == name)
    return mistake.source.encode()


@pytest.mark.slow
def test_more_than_a_hundred_calls_fit_into_a_workers_memory(origin, course_suite):
    """Each makes 4 MB that it doesn't need; the test holds nothing that keeps them in pieces."""
    (problem,) = COURSE.select(["09"])
    with lent_boundary(origin, memory_mb=256) as boundary:
        opened = boundary.open(mistaken(problem, "cost_of_fixed_size"))
        tests = ["test_every_way_to_cut_a_text", "test_every_way_to_cut"]
        found = verdicts(problem, lambda *_: opened, tests=tests, suite=course_suite)
    assert [(test.status.value, test.message) for test in found] == [("passed", "")] * 2


@pytest.mark.slow
@pytest.mark.parametrize("number", ["06", "07"])
def test_a_second_name_of_a_layer_or_argument_costs_nothing(sandbox, course_suite, number):
    """In process the audit proves it, as of all right files."""
    (problem,) = COURSE.select([number])
    source = COURSE.solution(problem).parent / "variants/second_names.py"
    opened = sandbox.open(source.read_bytes())
    try:
        tests = one_case_of_each(course_suite)
        found = verdicts(problem, lambda *_: opened, tests=tests, suite=course_suite)
    finally:
        opened.close()
    assert [test.id for test in found if test.status != "passed"] == []


MODEL = Path(__file__).parent / "model.py"
OBJECT = """return self.lm_head(self.transformer.ln_f(x)), type("Cache", (), {
            "__module__": __name__, "__iter__": lambda c: iter(present)})()"""
TESTS = """
import pytest
import torch
from grader.code.cost import counting
from grader.run.compare import check, require

SIZES = {"vocab_size": 11, "n_positions": 8, "n_embd": 16, "n_layer": 2, "n_head": 4}

def model(problem):
    return problem.CachedGPT(problem.GPTConfig(**SIZES)).double()

@pytest.mark.points(1)
def test_config(problem):
    "a config has fields and defaults"
    require(problem.GPTConfig().n_embd == 768, "the default is 768")
    require(model(problem).config.n_embd == 16, "n_embd is 16")

@pytest.mark.points(1)
def test_tied(problem):
    "the head's weight is the embedding's"
    found = model(problem)
    require(found.lm_head.weight is found.transformer.wte.weight, "they are two")

@pytest.mark.points(1)
def test_chunks(problem, rng):
    "a cache changes nothing"
    found, idx = model(problem), torch.arange(6)[None]
    whole, _ = found(idx)
    first, past = found(idx[:, :2])
    kept = [[t.clone() for t in pair] for pair in past]
    rest, present = found(idx[:, 2:], past)
    check(torch.cat([first, rest], dim=1), whole, "the chunks")
    for pair, before in zip(past, kept):
        require(all(map(torch.equal, pair, before)), "past was changed")
    require(isinstance(present, list | tuple), "present is a list or tuple")

@pytest.mark.points(1)
def test_past_is_left_as_it_was(problem):
    "a list of pasts holds what it held"
    found = model(problem)
    _, past = found(torch.arange(4)[None])
    before = [*past]
    found(torch.arange(2)[None], past)
    same = len(past) == len(before) and all(a is b for a, b in zip(past, before))
    require(same, "the list was changed")

@pytest.mark.points(1)
def test_past_gets_gradients(problem):
    "gradients pass through the cache"
    found, idx = model(problem), torch.arange(6)[None]
    _, past = found(idx[:, :3])
    logits, _ = found(idx[:, 3:], past)
    (gradient,) = torch.autograd.grad(logits.sum(), past[0][0])
    require(gradient.any(), "no gradient")

@pytest.mark.points(1)
def test_cost(problem):
    "one more token costs little"
    found, idx = model(problem), torch.arange(8)[None]
    _, past = found(idx[:, :7])
    with counting() as cost:
        found(idx[:, 7:], past)
    require(cost.operations == 13_664, f"{cost.operations} operations")
    with counting() as cost, torch.no_grad():
        found.generate(idx[:, :1], 2)
    require(cost.operations < 60_000, f"{cost.operations} operations")

@pytest.mark.points(1)
def test_texts_in_a_row(problem):
    "another text may follow"
    found = model(problem)
    for start in range(3):
        _, past = found(torch.arange(start, start + 2)[None])
        logits, _ = found(torch.arange(2)[None], past)
        require(logits.isfinite().all(), "the logits are no numbers")

@pytest.mark.points(1)
def test_texts_side_by_side(problem):
    "another text changes no past"
    found = model(problem)
    whole, _ = found(torch.arange(6)[None])
    _, past = found(torch.arange(4)[None])
    found(torch.arange(4, 8)[None])
    rest, _ = found(torch.arange(4, 6)[None], past)
    check(rest, whole[:, 4:], "the rest")

@pytest.mark.points(1)
def test_too_long(problem):
    "more than n_positions is refused"
    with pytest.raises(ValueError):
        model(problem)(torch.zeros(1, 9, dtype=torch.int64))
"""
CHANGES = {
    "nothing": ("", ""),
    "another default": ("n_embd: int = 768", "n_embd: int = 64"),
    "a config that is changed": ("self.config = config", "self.config = config; config.n_embd = 8"),
    "no dataclass": ("@dataclass\n", ""),
    "untied": ("tied = True", "tied = False"),
    "weights with the same numbers": (
        "self.lm_head.weight = self",
        "self.lm_head.weight.data = self",
    ),
    "positions from 0": ("torch.arange(start, start + idx.shape[1])", "torch.arange(idx.shape[1])"),
    "a past that is changed": ("present.append(kept)", "present.append(kept); past.append(None)"),
    "a past that is written over": (
        "            present.append(kept)\n",
        "            present.append(kept)\n        past[:] = [pair and [*pair] for pair in past]\n",
    ),
    "a past that grows in place": (
        "q.shape[-2], k.shape[-2]",
        "q.shape[-2], k.shape[-2] + (0 if past is None else int(past[0].data.zero_().sum()))",
    ),
    "one buffer for all texts": (
        "        return self.c_proj(y.transpose(1, 2).flatten(-2)), (k, v)",
        "        if not hasattr(self, 'room'):\n"
        "            self.room = k.new_zeros(2, *k.shape[:2], 16, k.shape[-1])\n"
        "        self.room[..., :m, :] = torch.stack([k, v]).detach()\n"
        "        present = tuple(self.room[..., :m, :])\n"
        "        return self.c_proj(y.transpose(1, 2).flatten(-2)), present",
    ),
    "a cache without gradients": (
        "present.append(kept)",
        "present.append([t.detach() for t in kept])",
    ),
    "one tensor": ("present.append(kept)", "present.append(torch.stack(kept))"),
    "an object for a cache": ("return self.lm_head(self.transformer.ln_f(x)), present", OBJECT),
    "all again": (
        "past = past or [None]",
        "self.lm_head(x0 := torch.ones(40, 16, dtype=torch.float64)); past = past or [None]",
    ),
    "another error": ("raise ValueError(", "raise IndexError("),
    "unwritten": (
        "        past = past or",
        "        raise NotImplementedError\n        past = past or",
    ),
}


@pytest.fixture(scope="module")
def course_of_models(tmp_path_factory, new_course) -> tuple[Course, Suite]:
    """The small course with the tests above, and these collected."""
    course = new_course(tmp_path_factory.mktemp("of models"))
    tests = course.root / "problems/01-doubling/test_doubling.py"
    tests.write_text(TESTS + "\n# --- hidden tests ---\n", encoding="utf-8")
    manifest = course.root / "course.toml"
    said = manifest.read_text(encoding="utf-8").replace('"softmax"', '"MultiheadAttention"')
    manifest.write_text(said, encoding="utf-8")
    return course, Suite(course.problems(), course.root, timeout=120)


@pytest.mark.slow
@pytest.mark.parametrize("name", CHANGES)
def test_equivalence_of_objects_and_costs(sandbox, course_of_models, tmp_path, name):
    course, suite = course_of_models
    file = tmp_path / "problem.py"
    before, after = CHANGES[name]
    text = MODEL.read_text(encoding="utf-8")
    assert before in text
    file.write_text(text.replace(before, after), encoding="utf-8")
    opened = sandbox.open(file.read_bytes())
    try:
        (problem,) = course.problems()
        here = verdicts(problem, LocalFiles(lambda _: file), suite=suite)
        there = verdicts(problem, lambda *_: opened, suite=suite)
    finally:
        opened.close()
    assert [(t.id, t.status.value) for t in there] == [(t.id, t.status.value) for t in here]
    assert (name == "nothing") == all(t.status == "passed" for t in here), here


@pytest.mark.slow
def test_long_sequences_in_loops_fit_into_a_workers_memory(sandbox, tmp_path):
    """Loops over pairs aren't asked for them; should one be taken for another way, it goes well."""
    shutil.copytree(COURSE.root / "problems", tmp_path / "problems")
    shutil.copy(COURSE.root / "course.toml", tmp_path)
    (problem,) = (p for p in Course(tmp_path).problems() if p.id.startswith("05"))
    shared = tmp_path / "problems/shared/worked_example.py"
    text = shared.read_text(encoding="utf-8")
    never, found = re.subn(r"\ndef loops_over_pairs\(run\):\n", r"\g<0>    return False\n\n", text)
    assert found == 1
    shared.write_text(never, encoding="utf-8")
    loops = COURSE.solution(problem).parent / "variants/entry_by_entry.py"
    opened = sandbox.open(loops.read_bytes())
    try:
        (found,) = verdicts(problem, lambda *_: opened, tmp_path, ["test_sequences_of_any_length"])
    finally:
        opened.close()
    assert found.status == "passed", found.message
