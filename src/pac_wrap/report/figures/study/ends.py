"""Labels at the ends of lines, moved apart."""

from collections.abc import Sequence


def spread(places: Sequence[float], gap: float) -> list[float]:
    """Return places in the same order, at least `gap` apart and as near the given ones as can be.

    >>> spread([10.0, 11.0, 40.0], 5.0)
    [8.0, 13.0, 40.0]
    """
    order = sorted(range(len(places)), key=lambda i: places[i])
    groups: list[list[int]] = []

    def start(group: list[int]) -> float:
        middle = sum(places[i] for i in group) / len(group)
        return middle - gap * (len(group) - 1) / 2.0

    for i in order:
        groups.append([i])
        while len(groups) > 1 and start(groups[-1]) < start(groups[-2]) + gap * len(groups[-2]):
            last = groups.pop()
            groups[-1] += last
    found = {i: start(group) + gap * rank for group in groups for rank, i in enumerate(group)}
    return [found[i] for i in range(len(places))]
