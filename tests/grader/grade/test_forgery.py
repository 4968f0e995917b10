"""By forging records, a file with wrong code can gain at most a few points."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator

import pytest

from grader.course import own_course
from grader.result import ProblemResult, Status
from grader.sandbox.sandbox import Sandbox
from grader.sandbox.starting import TemplateProcess
from tests.lent import lent_sandbox
from tests.source_grader import SourceGrader

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is for Linux"),
]

SHARE = 1 / 20
"""The largest share of a problem's points that a forgery can gain."""


def stub(number: str) -> str:
    """Return the text of a problem's stub, which provides definitions for wrong files."""
    (problem,) = own_course().select([number])
    return problem.stub.read_text(encoding="utf-8")


WRONG = {
    "01": """
import torch

def dot_product_similarity(q, k):
    return q[..., :1] + k[..., :1].mT + 0 * (q.sum() + k.sum())

def softmax(x, dim=-1):
    return x - x.mean(dim, keepdim=True)
""",
    "07": stub("07")
    + """
class GPT(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        n, sizes = config.n_embd, (config.n_embd, config.n_head, config.dropout, config.bias)
        self.transformer = nn.ModuleDict({
            "wte": nn.Embedding(config.vocab_size, n),
            "wpe": nn.Embedding(config.n_positions, n),
            "h": nn.ModuleList(Block(*sizes) for _ in range(config.n_layer)),
            "ln_f": nn.LayerNorm(n, bias=config.bias),
        })
        self.lm_head = nn.Linear(n, config.vocab_size, bias=False)

    def forward(self, idx, targets=None):
        every = sum(weight.sum() for weight in self.parameters())
        logits = self.lm_head(self.transformer["wte"](idx)).cumsum(1) + 0 * every
        return logits, None if targets is None else logits.mean()

    def generate(self, idx, max_new_tokens):
        return torch.cat([idx, idx[:, -1:].repeat(1, max_new_tokens)], dim=1)

def get_batch(data, n_positions, batch_size, generator=None):
    x = data[:n_positions].repeat(batch_size, 1)
    return x, x + 1

def bigram_loss(data, vocab_size):
    return 1.0
""",
    "08": """
def apply_temperature(logits, temperature):
    return logits - temperature

def keep_top_k(logits, k):
    return logits - 1

def keep_top_p(logits, p):
    return logits - 1

def sample(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    return logits.argmin(-1)
""",
    "09": stub("09")
    + """
def kv_cache_bytes(n_layer, n_embd, seq_len, batch_size=1, bytes_per_number=2):
    return n_layer * n_embd

class CachedAttention(nn.Module):
    def __init__(self, n_embd=768, n_head=12, bias=True):
        super().__init__()
        self.n_head = n_head
        self.c_attn = nn.Linear(n_embd, 3 * n_embd, bias=bias)
        self.c_proj = nn.Linear(n_embd, n_embd, bias=bias)

    def forward(self, x, past=None):
        q, k, v = self.c_attn(x).chunk(3, dim=-1)
        present = [each.unflatten(-1, (self.n_head, -1)).transpose(1, 2) for each in (v, k)]
        if past is not None:
            present = [torch.cat([old, new], dim=2) for old, new in zip(past, present)]
        return self.c_proj(q), present

def forward(self, idx, past=None):
    x, present = self.transformer["wte"](idx), []
    for number, block in enumerate(self.transformer["h"]):
        x, held = block(x, None if past is None else past[number])
        present.append(held)
    return self.lm_head(x), present

def generate(self, idx, max_new_tokens):
    return torch.cat([idx, idx.new_zeros(len(idx), max_new_tokens)], dim=1)

CachedGPT.forward, CachedGPT.generate = forward, generate
""",
    "10": """
import torch
import torch.nn.functional as F

def softmax_backward(weights, grad):
    return weights * grad

def attention_backward(q, k, v, grad, mask=None):
    weights = (q @ k.mT).softmax(-1)
    back = weights * (grad @ v.mT)
    return back @ k, back.mT @ q, weights.mT @ grad

def cross_entropy_backward(logits, targets):
    return logits.softmax(-1)

def clip_gradients(parameters, max_norm):
    return sum(p.grad.norm().item() for p in parameters if p.grad is not None)

def learning_rate(step, warmup, total, peak, floor):
    return peak - (peak - floor) * step / total

class AdamW:
    def __init__(self, parameters, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        self.parameters, self.lr = [*parameters], lr

    @torch.no_grad()
    def step(self):
        for p in self.parameters:
            if p.grad is not None:
                p -= self.lr * p.grad

    def zero_grad(self):
        pass

def train_step(model, idx, targets, optimizer, max_norm=1.0):
    loss = F.cross_entropy(model(idx).mT, targets, reduction="sum")
    loss.backward()
    optimizer.step()
    return loss.item()

def evaluate(model, batches):
    return F.cross_entropy(model(batches[0][0]).mT, batches[0][1]).item() / 2
""",
}

HEAD = """
import gc, sys
gc.unfreeze()

def namespace(function):
    return next(
        o.__globals__ for o in gc.get_objects()
        if type(o).__name__ == "function" and o.__name__ == function
        and o.__globals__["__name__"].startswith("grader")
    )

checks = namespace("judge_value")
compare = vars(checks["compare"])
record = checks["_record"]
"""

NOTHING_IS_CHECKED = "checks['_record'] = lambda *given, **more: None"

CLAIMS_HOLD = """
for name in ("require", "check_layer"):
    compare[name] = lambda *given, **more: None
compare["check_form"] = lambda actual, expected, call: actual
checks["AnswerRead"] = type("Never", (Exception,), {})
"""

BOTH_SIDES_ALIKE = """
def alike(call, value, judge, **more):
    if isinstance(value, tuple) and len(value) == 2:
        value = (value[1], value[1])
    record(call, value, judge, **more)
checks["_record"] = alike
"""

FROM_FRAMES = """
def taken(call, value, judge, **more):
    frame = sys._getframe(1)
    while frame and isinstance(value, torch.Tensor):
        for other in list(frame.f_locals.values()):
            same = isinstance(other, torch.Tensor) and other.shape == value.shape
            if same and other is not value and other.dtype == value.dtype:
                value = other
        frame = frame.f_back
    record(call, value, judge, **more)
checks["_record"] = taken
"""

ACCEPTED = """
def accepted(call, value, judge, **more):
    given = dict(zip(judge.__code__.co_freevars, judge.__closure__ or (), strict=False))
    candidates = [value, *(cell.cell_contents for cell in given.values())]
    if isinstance(value, tuple):
        candidates += [tuple(part for _ in value) for part in value]
    if isinstance(value, torch.Tensor):
        candidates += [0 * value, 0 * value + 1, value.softmax(-1) if 0 else value / value.sum()]
    for candidate in candidates:
        try:
            judge(candidate)
        except BaseException:
            continue
        value = candidate
        break
    if isinstance(value, tuple) and len(value) == 2:
        value = (value[1], value[1])
    record(call, value, judge, **more)
checks["_record"] = accepted
"""

UNKNOWN_IS_READ = """
unknown = namespace("is_unknown")["Unknown"]
for name in ("__bool__", "__len__", "__float__", "__iter__"):
    setattr(unknown, name, lambda self: 1)
checks["is_unknown"] = namespace("is_unknown")["is_unknown"] = lambda value: False
"""

ATTACKS = {
    "nothing is checked": NOTHING_IS_CHECKED,
    "claims hold": CLAIMS_HOLD,
    "both sides alike": BOTH_SIDES_ALIKE,
    "from frames": FROM_FRAMES,
    "accepted by judges": ACCEPTED,
    "claims hold, accepted by judges": CLAIMS_HOLD + ACCEPTED,
    "unknown is read": UNKNOWN_IS_READ + CLAIMS_HOLD + ACCEPTED,
}

Grade = Callable[[str, str], ProblemResult]


@pytest.fixture(scope="module")
def sandbox(origin: TemplateProcess) -> Iterator[Sandbox]:
    with lent_sandbox(origin, call_seconds=20) as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def grade(sandbox: Sandbox) -> Grade:
    @functools.cache
    def grader_of(number: str) -> SourceGrader:
        course = own_course()
        return SourceGrader(course, sandbox, *course.select([number]))

    return lambda number, source: grader_of(number)(source)


@pytest.fixture(scope="module")
def grade_honestly(grade: Grade) -> Callable[[str], ProblemResult]:
    """Return a function that grades a problem's wrong code without a forgery."""
    return functools.cache(lambda number: grade(number, WRONG[number]))


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
@pytest.mark.parametrize("number", WRONG)
def test_a_forgery_earns_at_most_a_few_points_more(
    grade: Grade, grade_honestly: Callable[[str], ProblemResult], number: str, attack: str
) -> None:
    honest, forged = grade_honestly(number), grade(number, WRONG[number] + HEAD + attack)
    assert honest.points < honest.max / 2
    assert forged.points <= honest.points + SHARE * honest.max
    assert all(test.status is not Status.INTERNAL for test in forged.tests)
    messages = {test.message for test in forged.tests}
    assert not any("stops while it is being imported" in text for text in messages)
