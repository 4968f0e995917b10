"""Who answers a test as code did that passed it passes too, without the test; all else is tested.

A test here is a function of a problem. `run` does with it what the grader does with its tests.
"""

import pytest
import torch

from grader.errors import Mismatch
from grader.isolation import Boundary, WorkerFailure, precedents
from grader.isolation.connection import Connection
from grader.isolation.protocol.memory import Memory
from grader.result import Status
from tests.lent import lent_boundary

DOUBLE = "def f(x): return x * 2\ndef count(): return 3"
COUNTING = """
calls = []
def f(x):
    calls.append(1)
    return x * 2 if len(calls) < {wrong} else x * 3
def count(): return len(calls)
"""


@pytest.fixture(scope="module")
def impatient(origin):
    with lent_boundary(origin, call_seconds=1) as boundary:
        yield boundary


@pytest.fixture
def boundary(impatient):
    """One that has no precedents yet."""
    impatient.forget_precedents()
    return impatient


@pytest.fixture
def run(boundary: Boundary):
    """Return what runs a test on source text: whether it ran, and what it raised."""

    def run(source, test, key="test"):
        problem = boundary.open(source.encode())
        torch.set_grad_enabled(True)  # code leaves it off for the test that it is called in
        try:
            if problem.begin_test(key):
                return False, None
            try:
                test(problem)
            except Exception as error:
                return True, error
            problem.passed_test(key)
            return True, None
        finally:
            problem.close()

    return run


def three_times(problem):
    """Ask for three values; each but the first is asked for what came before."""
    x = torch.ones(2)
    for _ in range(3):
        x = problem.f(x)
    assert x.tolist() == [8, 8]


@pytest.fixture
def asked(monkeypatch):
    """The ids of the requests that went to workers, those ahead of a test with them."""
    sent = []
    ask = Connection._ask

    def listen(self, asked, left):
        answer = ask(self, asked, left)
        sent.append(self.asked)
        return answer

    monkeypatch.setattr(Connection, "_ask", listen)
    return sent


def test_a_test_does_not_run_for_answers_that_passed(run):
    assert run(DOUBLE, three_times) == (True, None)
    assert run(DOUBLE, three_times) == (False, None)
    assert run("def f(x):\n    return x + x\ncount = f", three_times) == (False, None)


def test_another_test_another_seed_and_other_names_are_not_the_same(run):
    assert run(DOUBLE, three_times, key=(0, "test"))[0]
    assert run(DOUBLE, three_times, key=(1, "test"))[0]
    assert run(DOUBLE, three_times, key=(0, "other"))[0]
    assert run(DOUBLE.replace("f(x)", "g(x)"), three_times, key=(0, "test"))[0]
    assert not run(DOUBLE, three_times, key=(0, "test"))[0]


def test_other_names_in_the_file_matter_to_who_looks_them_up(run):
    def curious(problem):
        assert problem.f(1) == 2
        assert not hasattr(problem, "g")

    assert run(DOUBLE, three_times) == (True, None)
    assert run(DOUBLE + "\ndef g(): pass", three_times) == (False, None)
    assert run(DOUBLE, curious, key="curious") == (True, None)
    assert run(DOUBLE + "\ndef h(): pass", curious, key="curious") == (False, None)
    ran, error = run(DOUBLE + "\ndef g(): pass", curious, key="curious")
    assert ran
    assert isinstance(error, AssertionError)


def test_what_failed_is_no_precedent(run):
    wrong = "def f(x): return x * 3"
    for _ in range(2):
        ran, error = run(wrong, three_times)
        assert ran
        assert isinstance(error, AssertionError)


@pytest.mark.parametrize("wrong", [1, 2, 3])
def test_nothing_is_asked_twice(run, asked, wrong):
    """Code that remembers its calls gets each of them once, wherever it begins to be wrong."""
    run(DOUBLE, three_times)
    asked.clear()

    def test(problem):
        found = []
        x = torch.ones(2)
        for _ in range(3):
            x = problem.f(x)
            found.append(float(x[0]))
        raise ValueError(found, problem.count())

    ran, error = run(COUNTING.format(wrong=wrong), test)
    right = [2.0, 4.0, 8.0]
    factors = [2 if call < wrong else 3 for call in (1, 2, 3)]
    expected = [torch.tensor(factors[: n + 1]).prod().item() for n in range(3)]
    assert ran
    assert expected != right
    assert error.args == (expected, 3)
    assert asked == [1, 1, 2, 3, 4]  # the file, three calls, the count


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("1", "True"),
        ("1", "1.0"),
        ("0.0", "-0.0"),
        ("[1]", "(1,)"),
        ("torch.ones(2)", "torch.ones(2).double()"),
        ("torch.zeros(2)", "-torch.zeros(2)"),
        ("torch.ones(2, 1)", "torch.ones(1, 2)"),
        ("torch.ones(2, 2)", "torch.ones(2, 2).requires_grad_()"),
        ("torch.ones(1)", "torch.ones(1) + 1e-7"),
        ("1", "(torch.rand(1), 1)[1]"),
        ("1", "(print('!'), torch.set_grad_enabled(False), 1)[2]"),
    ],
)
def test_what_equals_an_answer_to_python_is_another_one(run, right, wrong):
    source = "import torch\ndef f(): return {}"
    assert run(source.format(right), lambda problem: problem.f())[0]
    assert run(source.format(wrong), lambda problem: problem.f())[0]
    assert not run(source.format(right), lambda problem: problem.f())[0]


def test_who_changes_an_argument_is_found_out(run):
    def test(problem):
        x = torch.ones(3)
        problem.f(x)
        assert torch.equal(x, torch.ones(3))

    assert run("def f(x): return 1", test) == (True, None)
    ran, error = run("def f(x):\n    x.zero_()\n    return 1", test)
    assert ran
    assert isinstance(error, AssertionError)
    ran, error = run("def f(x):\n    x.add_(1).sub_(1)\n    return 1", test)
    assert (ran, error) == (False, None)  # who restores it has not changed it


def test_who_changes_its_weights_is_found_out(run):
    source = (
        "import torch\nfrom torch import nn\nclass Layer(nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n"
        "        self.weight = nn.Parameter(torch.ones(2))\n"
        "    def forward(self, x):\n        {}\n        return x.sum().detach() * 2\n"
    )

    def test(problem):
        layer = problem.Layer()
        for _ in range(2):
            assert layer(torch.ones(2)) == 4

    assert run(source.format("pass"), test) == (True, None)
    ran, error = run(source.format("self.weight.data.zero_()"), test)
    assert ran
    assert isinstance(error, Mismatch)
    assert run(source.format("pass"), test) == (False, None)


def test_a_worker_that_lies_can_not_hide_a_changed_argument(run):
    """It says that it needs its arguments no more, and that nothing moved."""
    lies = (
        "import gc\nfor each in gc.get_objects():\n"
        "    if type(each).__name__ == 'Inbox':\n"
        "        type(each).released = lambda self: [*self._needed]\n"
        "    if type(each).__name__ == 'Request':\n"
        "        type(each).moved_away = lambda self: []\n"
        "def f(x):\n    x.zero_()\n    return 1"
    )

    def test(problem):
        x = torch.ones(3)
        assert [problem.f(x) for _ in range(2)] == [1, 1]
        assert torch.equal(x, torch.ones(3))

    assert run("def f(x): return 1", test) == (True, None)
    ran, error = run(lies, test)
    assert ran
    assert isinstance(error, AssertionError)


def test_an_earlier_argument_that_changes_later_is_for_the_test_to_judge(run):
    def test(problem):
        assert [problem.f(torch.ones(3)) for _ in range(3)] == [1, 1, 1]

    assert run("def f(x): return 1", test) == (True, None)
    keeps = "kept = []\ndef f(x):\n    [k.zero_() for k in kept]\n    kept.append(x)\n    return 1"
    assert run(keeps, test) == (True, None)


def test_gradients_modules_and_objects_are_part_of_it(run):
    source = (
        "from dataclasses import dataclass\nimport torch\nfrom torch import nn\n"
        "@dataclass\nclass Config:\n    width: int = 2\n"
        "class Layer(nn.Module):\n"
        "    def __init__(self, config):\n        super().__init__()\n"
        "        self.linear = nn.Linear(config.width, config.width)\n"
        "        self.register_buffer('seen', torch.zeros(1))\n"
        "    def forward(self, x):\n        self.seen += 1\n        return self.linear(x{})\n"
    )

    def test(problem):
        layer = problem.Layer(problem.Config(2))
        x = torch.ones(2, requires_grad=True)
        for _ in range(2):
            (layer(x) * 2).sum().backward()
        assert layer.seen == 2
        with torch.no_grad():
            layer.linear.weight.mul_(2)
        layer(x).sum().backward()
        assert torch.allclose(x.grad, 6 * layer.linear.weight.sum(0) / 2)
        assert problem.Config(3).width == 3

    def seeded(problem):
        torch.manual_seed(0)
        test(problem)

    assert run(source.format(""), seeded) == (True, None)
    assert run(source.format(""), seeded) == (False, None)
    assert run(source.format(" * 1.0"), seeded) == (False, None)
    ran, error = run(source.format(".detach()"), seeded)
    assert ran
    assert error is not None
    assert run(source.format(" + 1e-6"), seeded) == (True, None)
    assert run(source.format(""), seeded) == (False, None)


@pytest.mark.parametrize(
    ("ending", "status"),
    [
        ("while True: pass", Status.TIMEOUT),
        ("import os; os._exit(0)", Status.CRASH),
        ("return {1: object()}", None),
    ],
)
@pytest.mark.parametrize("at", [1, 2])
def test_how_a_worker_ends_is_told_where_the_test_asks(run, ending, status, at):
    run(DOUBLE, three_times)
    source = f"n = 0\ndef f(x):\n    global n\n    n += 1\n    if n == {at}:\n        {ending}\n"
    before = []

    def test(problem):
        x = torch.ones(2)
        for _ in range(3):
            x = problem.f(x)
            before.append(x)

    ran, error = run(source + "    return x * 2\ndef count(): pass", test)
    assert ran
    assert all(torch.is_tensor(x) for x in before[: at - 1])
    if status is not None:
        assert isinstance(error, WorkerFailure)
        assert error.status is status
        assert len(before) == at - 1


def test_after_a_workers_end_the_next_test_has_a_new_one(boundary):
    first = boundary.open(DOUBLE.encode())
    assert not first.begin_test("a")
    three_times(first)
    first.passed_test("a")
    problem = boundary.open(b"import os\ndef f(x): os._exit(0)\ndef count(): return 3")
    for _ in range(2):
        assert not problem.begin_test("a")
        with pytest.raises(WorkerFailure):
            three_times(problem)
    assert not problem.begin_test("b")
    assert problem.count() == 3
    problem.passed_test("b")


def test_a_test_that_asks_otherwise_is_given_up(run):
    """Such a test would be a fault of the course's; no student pays for it."""
    number = iter([1.0, 5.0, 7.0, 8.0, 9.0])

    def whimsical(problem):
        problem.f(torch.full((2,), next(number)))
        assert problem.count() == 3

    assert run(DOUBLE, whimsical) == (True, None)
    ran, error = run(DOUBLE.replace("3", "2"), whimsical)
    assert ran
    assert error.status is Status.INTERNAL  # it is run once more, see tests/grading
    for _ in range(2):
        assert run(DOUBLE, whimsical) == (True, None)


def test_there_is_an_end_to_what_is_kept(run, boundary, monkeypatch):
    monkeypatch.setattr(precedents, "_MOST_WAYS", 2)
    for extra in range(3):
        source = f"def f(): return {extra}"
        assert run(source, lambda problem: problem.f())[0]
    kept = [not run(f"def f(): return {extra}", lambda problem: problem.f())[0] for extra in (0, 2)]
    assert kept == [False, True]  # the oldest goes
    monkeypatch.setattr(precedents, "MOST_ANSWERED", 20_000)
    for size, passes in ((100, True), (9000, False)):
        source = f"import torch\ndef g(): return torch.ones({size})"
        assert run(source, lambda problem: problem.g(), key=size)[0]
        assert run(source, lambda problem: problem.g(), key=size)[0] is not passes
    monkeypatch.setattr(precedents, "_MOST_BYTES", 0)
    boundary.forget_precedents()
    for _ in range(2):
        assert run("def h(): return 1", lambda problem: problem.h())[0]


def test_where_there_is_no_room_a_digest_tells_answers_apart(run, boundary, monkeypatch):
    monkeypatch.setattr(precedents, "_MOST_PAYLOADS", 4)
    boundary.forget_precedents()
    assert run(DOUBLE, three_times) == (True, None)
    assert run(DOUBLE, three_times) == (False, None)
    ran, error = run(COUNTING.format(wrong=3), three_times)
    assert ran
    assert isinstance(error, AssertionError)


def test_a_test_may_write_on_what_it_was_answered(run):
    def writing(problem):
        first = problem.f(torch.ones(2))
        assert first.tolist() == [2, 2]
        first.zero_()
        assert problem.f(torch.ones(2)).tolist() == [2, 2]

    assert run(DOUBLE, writing) == (True, None)
    for _ in range(2):  # the first answer is known, and heard by the test
        assert isinstance(run(COUNTING.format(wrong=2), writing)[1], AssertionError)
    assert run(DOUBLE, writing) == (False, None)


def test_no_room_for_another_answer_than_the_known_one_is_that_codes_fault(run, monkeypatch):
    """The process that grades has a limit of memory, and an answer may announce 256 MB."""
    run(DOUBLE, three_times)

    def full(self, offset, size):
        if size:
            raise MemoryError
        return bytearray()

    monkeypatch.setattr(Memory, "copy", full)
    ran, error = run(COUNTING.format(wrong=2), three_times)
    assert ran
    assert isinstance(error, WorkerFailure)
    assert error.status is Status.BAD_OUTPUT


def test_what_is_printed_is_never_left_out(origin):
    with lent_boundary(origin, capture=True) as boundary:
        for _ in range(2):
            problem = boundary.open(b"def f(): print('seen')")
            assert not problem.begin_test("test")
            problem.f()
            problem.passed_test("test")
            problem.close()
        assert boundary.printed == ["seen\n"] * 2


def test_what_passed_though_it_changed_something_is_no_precedent(run):
    """The test goes on with what it was changed to, and asks others what it would not ask them."""

    def careless(problem):
        x = torch.ones(5)
        for _ in range(2):
            assert torch.allclose(problem.f(x), 2 * torch.ones(5))

    def looking_for_errors(problem):
        try:
            problem.f(torch.tensor([1, 2, 3]))
        except Mismatch:
            return
        raise ValueError("no error")

    changing = "def f(x):\n    y = 2 * x\n    x.add_(1)\n    return y"
    for test in (careless, looking_for_errors):
        assert run(changing, test, key=test) == (True, None)
    right = "def f(x): return 2 * x"
    assert [run(right, careless, key=careless) for _ in range(2)] == [(True, None), (False, None)]
    for _ in range(2):
        ran, error = run(right, looking_for_errors, key=looking_for_errors)
        assert ran
        assert isinstance(error, ValueError)


def test_weights_that_change_when_a_gradient_is_asked_for_make_none_either(run):
    source = (
        "import torch\nfrom torch import nn\n"
        "class Twice(torch.autograd.Function):\n"
        "    @staticmethod\n    def forward(ctx, x, weight):\n"
        "        ctx.weight = weight\n        return 2 * x\n"
        "    @staticmethod\n    def backward(ctx, g):\n        {}\n        return 2 * g, None\n"
        "class Layer(nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n"
        "        self.weight = nn.Parameter(torch.ones(2))\n"
        "    def forward(self, x): return Twice.apply(x, self.weight)\n"
    )

    def test(problem):
        layer, x = problem.Layer(), torch.ones(2, requires_grad=True)
        for _ in range(2):
            layer(x).sum().backward()
        assert x.grad.tolist() == [4, 4]

    right = source.format("pass")
    assert run(source.format("ctx.weight.data.mul_(2)"), test) == (True, None)
    assert [run(right, test) for _ in range(2)] == [(True, None), (False, None)]


def test_an_end_that_nobody_heard_of_is_forgotten(boundary):
    first = boundary.open(DOUBLE.encode())
    first.begin_test("test")
    three_times(first)
    first.passed_test("test")
    dying = (
        "import os\nn = 0\ndef f(x):\n    global n\n    n += 1\n"
        "    if n == 3: os._exit(0)\n    return x * 2\ndef count(): return 4"
    )
    problem = boundary.open(dying.encode())
    assert not problem.begin_test("test")
    problem.f(torch.ones(2))  # and here the test ends, by an alarm of its own for example
    assert not problem.begin_test("test")
    with pytest.raises(WorkerFailure, match="exit status 0"):
        three_times(problem)
    assert not problem.begin_test("other")
    assert problem.count() == 4


@pytest.mark.parametrize("keeps", [True, False])
def test_results_of_an_earlier_test_are_nobodys(boundary, monkeypatch, keeps):
    """A test that failed may hold some for long; no later one may fail for that."""
    if not keeps:
        monkeypatch.setattr(boundary, "_precedents", None)
    source = "last = []\ndef f(x):\n    [y.zero_() for y in last]\n    last[:] = [x * 2]\n"
    problem = boundary.open(f"{source}    return last[0]".encode())
    problem.begin_test("first")
    held = problem.f(torch.ones(2))
    problem.begin_test("second")
    own = problem.f(torch.ones(2))
    assert own.tolist() == held.tolist() == [2, 2]
    with pytest.raises(Mismatch, match="earlier call"):
        problem.f(torch.ones(2))
