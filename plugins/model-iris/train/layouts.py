"""Where things stand: cells of a canvas for each arrangement, always the same ones."""

ROWS = {1: [1], 2: [2], 3: [2, 1], 4: [2, 2], 5: [3, 2], 6: [3, 3]}
SINGLE = 0.875  # the part of the canvas' smaller side that a lone thing fills
CELL = 0.9  # the part of its cell that one of several fills


def rows_of(counts, top=0.0, bottom=1.0):
    """Centres and sizes of rows that hold so many cells each, as parts of width and height."""
    high = (bottom - top) / len(counts)
    widest = max(counts)
    spots = []
    for row, count in enumerate(counts):
        for column in range(count):
            x = 0.5 + (column - (count - 1) / 2) / widest
            spots.append((x, top + (row + 0.5) * high, 1 / widest, high))
    return spots


def single(ground=False):
    """A lone thing: in the middle, or on the ground of a place."""
    return [(0.5, 0.58, 0.66, 0.66)] if ground else [(0.5, 0.5, SINGLE / CELL, SINGLE / CELL)]


def several(count, ground=False):
    """`count` things in plain rows."""
    if not ground:
        return rows_of(ROWS[count])
    return rows_of([count], 0.42, 0.92) if count < 3 else rows_of(ROWS[count], 0.2, 0.98)


CORNERS = {
    "left": (0.25, 0.5),
    "right": (0.75, 0.5),
    "top": (0.5, 0.25),
    "bottom": (0.5, 0.75),
    "top left": (0.25, 0.25),
    "top right": (0.75, 0.25),
    "bottom left": (0.25, 0.75),
    "bottom right": (0.75, 0.75),
}


def corner(name):
    """One thing in a half or a quarter of the canvas."""
    x, y = CORNERS[name]
    return [(x, y, 0.5, 0.5)]


def pair(relation):
    """Cells of the first and the second thing of a relation."""
    cells = rows_of([2]) if relation in ("left", "right", "and") else rows_of([1, 1])
    return cells[::-1] if relation in ("right", "below") else cells
