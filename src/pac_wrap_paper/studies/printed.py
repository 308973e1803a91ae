"""The numbers that the paper prints, as printed; everything else in a study is computed."""

from functools import cache
from typing import Final

from pac_wrap.tails import interval
from pac_wrap_paper.studies.charts import Interval

SHARES: Final = (0.5, 0.75, 1.0)

# Tables 2 and 3: violation intervals at 50, 75 and 100 % of the calibration set, 4,000 trials
_Q1: Final = {
    ("synthetic", "isolation forest", "FPR"): ((0.034, 0.046), (0.024, 0.034), (0.031, 0.043)),
    ("synthetic", "LOF", "FPR"): ((0.033, 0.045), (0.020, 0.030), (0.030, 0.042)),
    ("synthetic", "isolation forest", "FNR"): ((0.033, 0.045), (0.032, 0.044), (0.035, 0.047)),
    ("synthetic", "LOF", "FNR"): ((0.034, 0.047), (0.035, 0.048), (0.032, 0.044)),
    ("thyroid", "isolation forest", "FPR"): ((0.024, 0.035), (0.007, 0.013), (0.025, 0.036)),
    ("thyroid", "LOF", "FPR"): ((0.022, 0.033), (0.006, 0.012), (0.026, 0.037)),
    ("thyroid", "isolation forest", "FNR"): ((0.006, 0.012), (0.010, 0.018), (0.012, 0.020)),
    ("thyroid", "LOF", "FNR"): ((0.006, 0.012), (0.014, 0.022), (0.016, 0.025)),
}
Q1: Final = {key: tuple(Interval(*ends) for ends in intervals) for key, intervals in _Q1.items()}
Q1_TRIALS: Final = 4000

# Table 4: FNR_or, FPR_or, FNR_tt, FPR_tt, FNR_th, FPR_th, ERR, eps
COLUMNS: Final = ("FNR_or", "FPR_or", "FNR_tt", "FPR_tt", "FNR_th", "FPR_th", "ERR", "eps")
Q2: Final = {
    "campaign": (0.000, 0.998, 0.026, 0.043, 0.267, 0.259, 0.266, 0.35),
    "celeba": (0.029, 0.456, 0.026, 0.042, 0.121, 0.097, 0.120, 0.15),
    "census": (0.055, 0.561, 0.048, 0.047, 0.230, 0.202, 0.229, 0.25),
}

# Tables of the appendix on time series, with the same columns: channels of NASA, windows of SMD
NASA: Final = {
    "S-1": (0.000, 0.615, 0.059, 0.088, 0.340, 0.293, 0.337, 0.40),
    "F-7": (0.132, 0.503, 0.060, 0.071, 0.292, 0.304, 0.293, 0.40),
    "E-7": (0.000, 0.714, 0.076, 0.081, 0.306, 0.246, 0.304, 0.40),
    "T-1": (0.001, 0.653, 0.103, 0.099, 0.367, 0.448, 0.382, 0.50),
    "T-2": (0.011, 0.738, 0.063, 0.084, 0.384, 0.428, 0.393, 0.50),
    "P-3": (0.013, 0.724, 0.053, 0.065, 0.363, 0.379, 0.366, 0.50),
}
SMD: Final = {
    "15-60": (0.036, 0.937, 0.074, 0.087, 0.487, 0.474, 0.487, 0.60),
    "15-120": (0.368, 0.563, 0.052, 0.000, 0.598, 0.359, 0.587, 0.60),
    "15-240": (0.011, 0.918, 0.086, 0.088, 0.538, 0.399, 0.532, 0.60),
    "30-60": (0.077, 1.000, 0.077, 0.000, 0.780, 0.201, 0.748, 0.80),
    "30-120": (0.818, 0.127, 0.057, 0.000, 0.781, 0.174, 0.746, 0.80),
    "30-240": (0.379, 0.467, 0.058, 0.000, 0.738, 0.158, 0.706, 0.80),
}

# Tables 5 and 6: average FPR, FNR and ambiguity; violation intervals of FPR and FNR, 300 trials
Q3_MEANS: Final = {"CPAD": (0.049, 0.051, 0.222), "PAC-Wrap": (0.038, 0.020, 0.345)}
Q3_VIOLATIONS: Final = {
    "CPAD": (Interval(0.344, 0.458), Interval(0.498, 0.614)),
    "PAC-Wrap": (Interval(0.001, 0.024), Interval(0.000, 0.018)),
}
Q3_TRIALS: Final = 300


def as_meant(printed: tuple[float, ...]) -> dict[str, float]:
    """Return a printed row by its columns, FNR and FPR of or and th interchanged: see the ERR columns."""
    row = dict(zip(COLUMNS, printed, strict=True))
    swapped = {"FNR_or": "FPR_or", "FPR_or": "FNR_or", "FNR_th": "FPR_th", "FPR_th": "FNR_th"}
    return {name: row[swapped.get(name, name)] for name in COLUMNS}


@cache
def count_behind(printed: Interval, trials: int) -> float:
    """Return the number of violations whose exact interval, rounded to three digits, is the printed one.

    The middle of all such counts, or the count whose interval comes nearest.
    """
    start, stop = int(printed.low * trials), min(int(printed.high * trials) + 2, trials + 1)

    def distance(count: int) -> float:
        low, high = interval(count, trials)
        return round(abs(round(low, 3) - printed.low) + abs(round(high, 3) - printed.high), 6)

    nearest = min(distance(count) for count in range(start, stop))
    fitting = [count for count in range(start, stop) if distance(count) == nearest]
    return (fitting[0] + fitting[-1]) / 2
