"""Returns thousands of objects, each of which the trusted side would have to hold."""


class Thing:
    def __init__(self, number):
        self.number = number


def double(x):
    return [Thing(number) for number in range(5000)]
