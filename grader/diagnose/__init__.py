"""Name the mistake behind a wrong answer by comparing it with the answers of known mistakes.

A problem's `probe.py` calls the student's code with a few small, fixed inputs (`probe`). The
problem's `fingerprints.json` stores the answers of the reference and of every known mistake to the
same calls, as a few numbers each (`fingerprints`). `matcher` finds the mistakes with matching
answers, separately for each function and class, and `naming` writes the sentences about them.
"""
