"""Returns an object whose fields lead back to it, in lists and by itself. Fields are plain."""


class Circle:
    def __init__(self):
        self.itself = self
        self.list = [self]
        self.list.append(self.list)
        self.table = vars(self)


def double(x):
    circle = Circle()
    return circle, [circle]
