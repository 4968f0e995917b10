"""Runs tests that a student wrote on a file of the course's, in a worker: the trusted side's half.

The worker gets the file and the tests, and nothing that says whether the file is right: not its
name, no docstring, no comment. All that is taken from it is how each test ended. So whoever forges
that says of a file what an honest test could say as well.
"""

from __future__ import annotations

import torch

from grader.isolation.connection import Budget, Connection
from grader.isolation.protocol import MAX_NAME, Header
from grader.isolation.protocol.checks import identifier, index, items, name_in, texts
from grader.isolation.spawn import Workers
from grader.own_tests import Ended, OwnTest
from grader.own_unusable import MOST_TESTS, Refused, Unusable

_MOST_LINES = 1 << 20


def run_trial(workers: Workers, file: bytes, tests: bytes, budget: Budget) -> list[OwnTest]:
    """Run a student's tests on a file.

    Args:
        workers: where a worker comes from; it is used for this alone.
        file: what is tested.
        tests: the student's file of tests.
        budget: how long it may take.

    Raises:
        Unusable: the tests can't be run.
        WorkerFailure: they did not end, or ended their process.
        BoundaryError: no worker could be started.
    """
    connection = Connection(workers.spawn(), budget)
    try:
        _ask(connection, {"do": "load", "forbidden": [], "capture": False}, file)
        answer = _ask(connection, {"do": "trial"}, tests)
        with connection.checked():
            told = answer.get("unusable")
            reason = None if told is None else _reason(told)
            found = [_test(packed) for packed in items(answer["tests"])[:MOST_TESTS]]
    finally:
        connection.close()
    if reason is not None:
        raise reason
    return found


def _ask(connection: Connection, request: Header, source: bytes) -> Header:
    connection.put([torch.frombuffer(bytearray(source + b"\n"), dtype=torch.uint8)])
    answer, _ = connection.exchange(request)
    return answer


def _test(packed: object) -> OwnTest:
    name, ended, line = items(packed, 3)
    return OwnTest(identifier(name), Ended(name_in(ended, [*Ended])), index(line, _MOST_LINES))


def _reason(packed: object) -> Unusable:
    """Return why the tests can't be run, as one of the reasons that there are."""
    reason, name, other, line = items(packed, 4)
    known = Refused[name_in(reason, Refused.__members__)]
    told = [text[:MAX_NAME] for text in texts([name, other])]
    return Unusable(known, told[0], told[1], index(line, _MOST_LINES))
