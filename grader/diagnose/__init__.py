"""Names the mistake behind a wrong answer, by comparing it with what known faults answer.

A problem's `probe.py` asks the student's code a few small fixed questions (`probe`). The answers
of the reference and of every known fault to the same questions are kept as a few numbers each in
the problem's `fingerprints.json` (`fingerprints`). `naming` finds the faults whose answers they
are, for each function and class by itself.
"""
