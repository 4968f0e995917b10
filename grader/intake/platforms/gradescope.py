"""Gradescope's export: `submission_123/` and so on, and `submission_metadata.yml` says whose."""

from __future__ import annotations

from grader.intake.layout import Layout, Work, unmatched_file
from grader.intake.platforms.download import Download, Platform
from grader.intake.platforms.gradescope_metadata import MAX_BYTES, METADATA, Handed, read_metadata
from grader.intake.problem_names import Problems, did_you_mean
from grader.intake.tree import Kind, Refused, TreeEntry, gathered
from grader.text import quoted


def _look(download: Download, problems: Problems) -> Layout | None:
    children = {child.name: child for child in download.children}
    if METADATA not in children:
        return None
    metadata = children.pop(METADATA)
    layout = Layout("Gradescope export", [])
    known: dict[str, Handed] = {}
    try:
        known = read_metadata(metadata.read(MAX_BYTES))
    except Refused as refused:
        layout.notes = [f"{refused.sentence(METADATA)} Submissions go by their folders' names."]
    absent = [key for key in known if key not in children]
    for name, child in children.items():
        if child.is_plain_file:
            layout.unmatched.append(unmatched_file(name, absent))
        else:
            is_told = name in known or not known
            note = f"{quoted(name)} is not in {METADATA}.{did_you_mean(name, absent)}"
            layout.works.append(_work(child, known.get(name, Handed()), "" if is_told else note))
    for key in absent:
        note = f"{quoted(key)} is in {METADATA}, but there is no such folder."
        layout.works.append(_work(gathered(key, ()), known[key], note))
    return layout


def _work(folder: TreeEntry, handed: Handed, note: str) -> Work:
    accounts = sorted(person.account for person in handed.people)
    who = "+".join(accounts) if accounts and all(accounts) else folder.name
    return Work(
        f"gradescope:{who}",
        " + ".join(person.name for person in handed.people) or folder.name,
        folder,
        tuple(person.member for person in handed.people),
        handed_in=handed.time,
        notes=(note,) if note else (),
    )


PLATFORM = Platform(
    _look, lists={METADATA: MAX_BYTES}, may_hold=lambda name, part: part.kind is Kind.FOLDER
)
