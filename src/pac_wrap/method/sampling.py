"""How calibration points were taken from a time series."""

from dataclasses import dataclass, field
from math import isfinite
from typing import Literal

from pac_wrap.base.arguments import check_choice, check_count, is_number
from pac_wrap.errors import InputError

Reduce = Literal["max", "mean", "last"]


@dataclass(frozen=True, slots=True)
class Sampling:
    """The windows, their spacing and the split of a series, and how many independent points they are worth.

    `split` is "blocks" (of `block` steps, calibration and test at least `gap` steps apart), "random",
    "series" if whole series calibrate, or "none" if every window does. An effective size is None where
    nothing can be said. The errors are the calibration points that the rule misjudges.
    """

    length: int
    every: int
    reduce: Reduce
    split: Literal["blocks", "random", "series", "none"]
    gap: int
    block: int | None
    effective_normal: float | None
    effective_anomalous: float | None
    errors_normal: int | None = field(default=None, metadata={"optional": True})
    errors_anomalous: int | None = field(default=None, metadata={"optional": True})

    def __post_init__(self) -> None:
        for name in ("length", "every", "gap", "block", "errors_normal", "errors_anomalous"):
            if (value := getattr(self, name)) is not None or name in ("length", "every", "gap"):
                object.__setattr__(self, name, check_count(name, value))
        check_choice("reduce", self.reduce, ("max", "mean", "last"))
        check_choice("split", self.split, ("blocks", "random", "series", "none"))
        if not 1 <= self.length <= self.every:
            raise InputError(f"length must lie between 1 and every = {self.every:,}, got {self.length:,}")
        if (self.block is not None) != (self.split == "blocks") or self.block == 0:
            raise InputError(
                f"block must be at least 1 for a split in blocks, and None for others, got {self.block!r} and"
                f" {self.split!r}"
            )
        for name in ("effective_normal", "effective_anomalous"):
            value = getattr(self, name)
            if value is None:
                continue
            if not is_number(value) or not isfinite(value) or value < 0:
                raise InputError(f"{name} must be a number, 0 or more, or None, got {value!r}")
            object.__setattr__(self, name, float(value))

    @property
    def worth(self) -> str:
        """How many independent points the windows count as, in words."""
        pairs = (("normal", self.effective_normal), ("anomalous", self.effective_anomalous))
        known = [f"about {size:,.0f} independent {name} scores" for name, size in pairs if size is not None]
        unknown = [f"it is unknown what the {name} scores are worth" for name, size in pairs if size is None]
        return "; ".join([f"worth {' and '.join(known)}"] * bool(known) + unknown)

    def __str__(self) -> str:
        split = {
            "blocks": f"split in blocks of {self.block:,} steps with a gap of {self.gap:,}"
            if self.block
            else "",
            "random": "split at random",
            "series": "split by whole series",
            "none": "all of them calibrate",
        }[self.split]
        if self.length == 1:
            return f"{'every step' if self.every == 1 else f'one in every {self.every:,} steps'}, {split}"
        return f"windows of {self.length:,} in every {self.every:,} steps ({self.reduce}), {split}"
