"""How many generated examples a test tries: few in the quick run, all of them in the slow one."""

from hypothesis import settings

FEW, ALL = 12, 100


def examples(number: int) -> int:
    """Return how many examples of a test are tried in this run; it names how many the slow run tries."""
    return max(min(number, 5), number * settings().max_examples // ALL)
