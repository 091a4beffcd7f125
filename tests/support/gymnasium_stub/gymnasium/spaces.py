"""Spaces that have what worker.py reads of Gymnasium's."""


class Discrete:
    def __init__(self, n, start=0):
        self.n, self.start = n, start


class Box:
    def __init__(self, low, high):
        self.low, self.high, self.shape, self.dtype = low, high, (len(low),), "float32"


class Text:
    def __repr__(self):
        return "Text(1, 8)"
