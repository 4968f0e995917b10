"""Layers that stand in a list and go by their own names as well are no further ones."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from grader.course import own_course
from grader.errors import Mismatch
from grader.result import Status
from grader.run.local_files import LocalFiles
from grader.run.session import Session
from grader.run.suite import Suite
from shared.worked_example import check_layers

COURSE = own_course()
PROBLEM = next(p for p in COURSE.problems() if p.id == "02-basic-attention")
VARIANT = COURSE.solution(PROBLEM).parent / "variants/list_of_layers.py"
ATTENTION = """
from torch import nn

class Attention(nn.Module):
    def __init__(self, n_embd=4):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(n_embd, n_embd) for _ in range(4))
        NAMED
"""
NAMED = {
    "twice": "self.query, self.key, self.value = self.layers = self.layers[:3]",
    "with a fourth": "self.query, self.key, self.value, _ = self.layers",
    "in the list alone": "self.layers = self.layers[:3]\n"
    "    query, key, value = (property(lambda self, i=i: self.layers[i]) for i in range(3))",
}


@pytest.fixture(params=["in process", "across the boundary"])
def loaded(request, opened):
    """Returns a function that loads source text, on this side or the other."""

    def load(source):
        if request.param == "across the boundary":
            return opened(source)
        namespace = {"__name__": "problem"}
        exec(source, namespace)
        return SimpleNamespace(**namespace)

    return load


def test_a_parameter_may_have_two_names(loaded):
    attention = loaded(ATTENTION.replace("NAMED", NAMED["twice"])).Attention()
    assert attention.layers[0].weight is attention.query.weight
    check_layers(attention, 4)


@pytest.mark.parametrize("named", ["with a fourth", "in the list alone"])
def test_what_has_another_name_only_is_further(loaded, named):
    attention = loaded(ATTENTION.replace("NAMED", NAMED[named])).Attention()
    with pytest.raises(Mismatch, match=r"further parameters that would learn: \['layers"):
        check_layers(attention, 4)


@pytest.mark.slow
@pytest.mark.parametrize("where", ["in process", "across the boundary"])
def test_a_file_with_such_layers_has_all_points(sandbox, where):
    def remote(problem, forbidden):
        return sandbox.open(VARIANT.read_bytes(), forbidden)

    files = remote if where == "across the boundary" else LocalFiles(lambda _: VARIANT)
    session = Session(files, hidden=True, diagnose=False)
    Suite([PROBLEM], COURSE.root, timeout=120).run(session)
    found = session.results[PROBLEM.id].tests
    assert [(t.id, t.message) for t in found if t.status is not Status.PASSED] == []
