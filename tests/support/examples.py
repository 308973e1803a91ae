"""How many generated examples a test tries: few in the quick run, five times as many in the slow one."""

from hypothesis import settings

# of a hundred
FEW, MANY = 12, 60


def examples(number: int) -> int:
    """Return how many examples of a test are tried in this run: 12 or 60 % of the number that it names."""
    return max(min(number, 5), number * settings().max_examples // 100)
