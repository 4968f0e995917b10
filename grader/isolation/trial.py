"""Runs tests that a student wrote on a file of the course's, in a worker: the trusted side's half.

The worker gets the file and the tests, and nothing that says whether the file is right: not its
name, no docstring, no comment. All that is taken from it is how each test ended. So whoever forges
that says of a file what an honest test could say as well.
"""

from __future__ import annotations

import torch

from grader.isolation.connection import Budget, Connection
from grader.isolation.protocol.wire import (
    MAX_NAME,
    Load,
    Response,
    Trial,
    identifier,
    named,
    numbered,
)
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
        _ask(connection, Load(), file)
        response = _ask(connection, Trial(), tests)
        with connection.checked():
            reason = None if response.unusable is None else _reason(*response.unusable)
            found = [_test(*described) for described in response.tests[:MOST_TESTS]]
    finally:
        connection.close()
    if reason is not None:
        raise reason
    return found


def _ask(connection: Connection, do: Load | Trial, source: bytes) -> Response:
    connection.put([torch.frombuffer(bytearray(source + b"\n"), dtype=torch.uint8)])
    response, _ = connection.exchange(do)
    return response


def _test(name: str, ended: str, line: int) -> OwnTest:
    return OwnTest(identifier(name), Ended(named(ended, [*Ended])), numbered(line, _MOST_LINES))


def _reason(reason: str, name: str, other: str, line: int) -> Unusable:
    """Return why the tests can't be run, as one of the reasons that there are."""
    known = Refused[named(reason, Refused.__members__)]
    return Unusable(known, name[:MAX_NAME], other[:MAX_NAME], numbered(line, _MOST_LINES))
