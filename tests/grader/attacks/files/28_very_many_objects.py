"""Returns thousands of objects. The trusted process receives only the names of their types."""


class Thing:
    def __init__(self, number):
        self.number = number


def double(x):
    return [Thing(number) for number in range(5000)]
