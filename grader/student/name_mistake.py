"""`grader hint --name`: name the mistake in a problem at once."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

from grader.course import Course, Problem, on_the_way
from grader.run.announce import loaded
from grader.student.position import newly_tested
from grader.student.report import WIDTH, next_step, trouble
from grader.student.seen import SeenMistakes, named

_NO_NAME = "The wrong answers match no known mistake.\n\n"


def name_mistake(course: Course, problems: Sequence[Problem]) -> str:
    """Return the message about the first problem with a wrong answer, and the mistake's name.

    Args:
        course: the student's copy.
        problems: where to look.
    """
    loaded()
    todo = ""
    for problem in on_the_way(problems):
        if not (session := newly_tested(course, problem, diagnose=True)):
            continue
        result = session.results[problem.id]
        reading = named(result)
        SeenMistakes(course.root).meet(problem.id, reading.met)
        width = min(WIDTH, shutil.get_terminal_size().columns)
        if text := trouble(result, session.printed[problem.id], reading=reading, width=width):
            return f"{problem.id}\n\n{'' if reading.sentences else _NO_NAME}{text}"
        todo = todo or ("" if result.passed else f"{problem.id}: {next_step(result)}")
    return f"There is no wrong answer here. {todo}".strip()
