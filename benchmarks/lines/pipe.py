"""`pac-wrap decide` in a pipe: rows without an end in flat memory."""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.lines.calibrate import drawn
from benchmarks.memory import MB, Ran, run_alone
from benchmarks.record import Aim, Growth, Measure, Result
from benchmarks.timing import LINEAR, Scale, exponent
from pac_wrap import calibrate

BLOCK = 10**4
# the largest over the smallest: flat, but for the noise of an allocator
FLAT = 1.2
ABOUT = """\
`pac-wrap decide certificate.json - --score s --format csv`, fed through a pipe with rows of two columns, as
fast as it takes them; peak memory of that process, with its start in the seconds. The aim of each size is
{flat} times the peak of the smallest."""
FEED = """
import sys
block = open(sys.argv[1], "rb").read()
out = sys.stdout.buffer
out.write(b"id,s\\n")
for _ in range(int(sys.argv[2])):
    out.write(block)
"""


def decided(certificate: Path, block: Path, times: int) -> Ran:
    """Pipe the block of rows through the command, this many times."""
    feed = subprocess.Popen([sys.executable, "-S", "-c", FEED, block, str(times)], stdout=subprocess.PIPE)
    command = "import sys; from pac_wrap.cli import main; main()"
    arguments = ["decide", str(certificate), "-", "--score", "s", "--format", "csv"]
    try:
        return run_alone([sys.executable, "-c", command, *arguments], stdin=feed.stdout)
    finally:
        assert feed.stdout is not None
        feed.stdout.close()
        feed.wait()


def measure(scale: Scale) -> Result:
    """Return seconds and peak memory for all sizes."""
    sizes = scale.pick(
        (10**4, 2 * 10**4),
        (10**6, 2 * 10**6, 5 * 10**6, 10**7),
        (10**6, 2 * 10**6, 5 * 10**6, 10**7, 10**8),
    )
    measures: list[Measure] = []
    with tempfile.TemporaryDirectory(prefix="pac-wrap-bench-") as folder:
        certificate, block = Path(folder) / "certificate.json", Path(folder) / "block.csv"
        calibrate(*drawn(1000, np.float64)).save(certificate)
        scores = np.random.default_rng(0).normal(2, 2, BLOCK).tolist()
        block.write_text("".join(f"{number},{score!r}\n" for number, score in enumerate(scores)))
        runs = [decided(certificate, block, size // BLOCK) for size in sizes]
    for size, ran in zip(sizes, runs, strict=True):
        row, aim = f"{size:,} rows", Aim("<=", FLAT * runs[0].peak / MB)
        measures.append(Measure(row, "seconds", ran.seconds, "s"))
        measures.append(Measure(row, "rows per second", size / ran.seconds, ""))
        measures.append(Measure(row, "peak memory", ran.peak / MB, "MB", aim))
    slopes: tuple[Growth, ...] = ()
    if len(sizes) >= 4:
        slope = exponent(sizes, [ran.seconds for ran in runs])
        slopes = (Growth("csv", "`pac-wrap decide`", slope, sizes, LINEAR),)
    about = ABOUT.format(flat=FLAT)
    return Result("pipe", "Verdicts in a pipe", about, scale.name, (), slopes, tuple(measures))
