"""Find the known mistakes that explain the wrong answers of a student's code.

A problem's `probe.py` calls the student's code with small, fixed inputs. The problem's file
`fingerprints.json` contains the answers of the reference and of every known mistake to the same
calls. Each answer consists of a few numbers. The module `matcher` finds the mistakes that explain
the student's answers, separately for each function and class. The module `naming` writes the
sentences about these mistakes.
"""
