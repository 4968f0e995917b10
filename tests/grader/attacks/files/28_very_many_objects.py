"""Returns thousands of objects. The trusted side would have to keep each of them."""


class Thing:
    def __init__(self, number):
        self.number = number


def double(x):
    return [Thing(number) for number in range(5000)]
