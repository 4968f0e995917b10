"""Sets the test's input to zero, so that 0 would be right. The test compares the input with a copy
and reports the change.
"""


def double(x):
    x.zero_()
    return x
