"""Proves the course: what is right passes, what is wrong doesn't, and a mistake is called by name.

For every problem it runs the stub, the reference solution, the right solutions in other styles
(`variants/`) and the catalogue of wrong ones (`mistakes.edits`) through all tests, several times
where chance could play a part, and lists everything that is not as it should be.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from grader.author.candidates import Kind, candidates
from grader.author.findings import findings
from grader.author.fingerprints import diagnosed, faults_switched_on, fingerprints_of
from grader.author.running import Outcome, run, several
from grader.course import Course, Problem
from grader.testing.diagnosis.fingerprints import Fingerprints


@dataclass(frozen=True)
class Audit:
    """All outcomes, and the findings: sentences that each tell of one thing to mend."""

    outcomes: list[Outcome]
    findings: list[str]

    def of(self, kind: Kind, problem: Problem | None = None) -> list[Outcome]:
        """Return the outcomes of one kind, of one problem or of all."""
        return [
            o
            for o in self.outcomes
            if o.candidate.kind is kind and problem in (None, o.candidate.problem)
        ]

    def summary(self) -> str:
        """Return the line that one can quote."""
        mistakes = self.of(Kind.MISTAKE)
        right = self.of(Kind.SOLUTION) + self.of(Kind.VARIANT)
        caught, named = sum(bool(m.caught_by) for m in mistakes), sum(m.named for m in mistakes)
        visibly, failed = (
            sum(m.caught_visibly for m in mistakes),
            sum(not r.result.passed for r in right),
        )
        return (
            f"caught {caught} of {len(mistakes)} (by visible tests alone {visibly}), "
            f"named {named} of {len(mistakes)}, wrongly failed {failed} of {len(right)}"
        )


def run_audit(
    course: Course,
    problems: list[Problem],
    jobs: int,
    *,
    write_fingerprints: bool = False,
    on_outcome: Callable[[Outcome], None] = lambda outcome: None,
) -> Audit:
    """Run every candidate and look for what is not as it should be.

    Args:
        course: where solutions, variants and mistakes are.
        problems: which problems to audit.
        jobs: how many candidates to run at the same time.
        write_fingerprints: whether to write `fingerprints.json` anew before it is judged.
        on_outcome: called as each candidate is done.
    """
    outcomes: list[Outcome] = []
    todo = list(candidates(course, problems))
    with several(jobs) as each:
        ask = partial(faults_switched_on, course, anew=write_fingerprints)
        switches = each(ask, problems)
        for outcome in each(run, todo, [course.root] * len(todo)):
            outcomes.append(outcome)
            on_outcome(outcome)
        made = dict(zip(problems, switches, strict=True))
    found: list[str] = []
    for problem in problems:
        of_problem = [outcome for outcome in outcomes if outcome.candidate.problem == problem]
        fresh = fingerprints_of(course, problem, of_problem, made[problem])
        if write_fingerprints:
            fresh.save(problem.fingerprints)
        known = Fingerprints.load(problem.fingerprints)
        named = [diagnosed(outcome, known) for outcome in of_problem]
        found += findings(problem, named, known, fresh)
    return Audit(outcomes, found)
