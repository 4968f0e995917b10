"""Returns an object whose attributes refer to the object itself, directly and in lists. The object
isn't a tensor.
"""


class Circle:
    def __init__(self):
        self.itself = self
        self.list = [self]
        self.list.append(self.list)
        self.table = vars(self)


def double(x):
    circle = Circle()
    return circle, [circle]
