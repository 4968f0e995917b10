"""What comes in: finds submissions in folders and archives and reads each student's files once.

Nothing in a submission is run, imported, unpacked or followed here. A file is read only when it is
a regular file of reasonable size; everything else about it is told in a sentence. Whatever is wrong
with one submission is said in its own row and never keeps the others from being read.

The way of a submission's bytes to its row: `paths` and `platforms` tell who handed in what, of a
tree that `disk` and `archives` make; `work_place` finds the work in it, by what `survey` says of
each entry; `reading` reads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from grader.course import Course, Problem
from grader.intake import notices
from grader.intake.collisions import Collisions
from grader.intake.handed_in import Intake, Submission
from grader.intake.optional_problems import without_skipped
from grader.intake.paths import are_all_classes, opened_path
from grader.intake.problem_names import Problems
from grader.intake.reading import read_submission


def find_submissions(
    paths: Iterable[Path], course: Course, only: Problem | None = None
) -> list[Submission]:
    """Read all submissions at `paths`; `take_in` says how."""
    return take_in(paths, course, only).submissions


def take_in(
    paths: Iterable[Path],
    course: Course,
    only: Problem | None = None,
    meant: Mapping[str, str] | None = None,
) -> Intake:
    """Read all submissions at `paths`, each one submission or a class of them.

    Folders and archives are alike. What a learning platform packs is recognised as such. Any other
    class holds submissions; a single folder around a class, or around what an archive holds, is
    looked through. What holds a problem's folder or file is one submission, unless two or more
    submissions stand beside it: then it is a class. There a file with code is told, and every
    folder has a row, even a problem's, so that nobody vanishes.
    Of several paths each is one submission, unless all of them hold two or more; a file among them
    that is no archive is told.

    An optional problem that was left out is not among a submission's files, unless it is `only`.

    Args:
        paths: what the instructor gave.
        course: whose problems to look for.
        only: the one problem that was handed in, if there is one. Then nothing else is looked for,
            and a `problem.py` whose path tells no problem is taken as if it stood in that folder.
        meant: for what files and folders in submissions are called, the ids of their problems.

    Raises:
        SubmissionError: a path is neither a folder nor an archive, or there is nothing in it.
    """
    known = {problem.id: problem for problem in course.problems()}
    optional = [problem for problem in known.values() if problem.part.optional]
    given = only.id if only else ""
    problems = Problems(tuple(known), given, meant=meant or {}, stubs=known)
    paths = list(paths)
    intake = Intake()
    collisions = Collisions()
    several = len(paths) > 1
    as_one = several and not are_all_classes(paths, problems)
    for path in paths:
        with opened_path(path, problems, several=several, as_one=as_one) as layout:
            rows = [read_submission(work, problems) for work in layout.works]
        if only is None:
            rows = [without_skipped(row, optional) for row in rows]
        if layout.title:
            line = notices.summary(layout, rows)
            intake.recognised.append(f"{path.name}: {line}" if several else line)
        intake.submissions += rows
        intake.is_whole |= len(rows) > 1
        collisions.add(rows, path)
        intake.unmatched += [*layout.notes, *layout.unmatched]
    intake.unmatched += collisions.resolve()
    intake.unmatched += notices.in_several(intake.submissions)
    intake.without_problem = notices.untold(intake.submissions, problems)
    is_told = any(notices.name_it(problems) in text for text in intake.unmatched)
    intake.unmatched += [intake.without_problem] if intake.without_problem and not is_told else []
    return intake
