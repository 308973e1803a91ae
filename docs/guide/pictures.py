"""Draw the pictures of the guide: session, curve, groups and report, from the guide's own commands.

Usage: python docs/guide/pictures.py (with PAC_WRAP_DATA set; the report needs chromium)
"""

import re
import shutil
import subprocess
from pathlib import Path

from rich.console import Group
from rich.text import Text

from pac_wrap.base.files import scratch_folder, write_whole
from pac_wrap.report.terminal import screen_svg
from run import BLOCK, HERE, run_page

IMAGES = HERE.parent / "images"
SHOWN = ("calibrate scores.parquet", "evaluate")


def session(text: str) -> Group:
    """Return the blocks of the page whose commands are shown, as a terminal shows them."""
    blocks = [block["shell"] or "" for block in BLOCK.finditer(text)]
    wanted = [block for block in blocks if re.match(rf"\$ pac-wrap ({'|'.join(SHOWN)})", block)]
    lines = "\n".join(wanted[:1] + wanted[-1:]).splitlines()
    return Group(
        *(Text(line, style="bold" if line.startswith("$") else "", overflow="fold") for line in lines)
    )


def photograph(page: Path, target: Path) -> None:
    """Save the top of a page as a picture."""
    browser = shutil.which("chromium")
    if browser is None:
        raise SystemExit("the picture of the report needs chromium (Debian's package: chromium)")
    with scratch_folder() as profile:
        flags = "--headless --no-sandbox --disable-gpu --disable-background-networking --no-first-run"
        size = ["--window-size=900,1505", "--hide-scrollbars", "--force-color-profile=srgb"]
        where = [f"--user-data-dir={profile}", f"--screenshot={target}", page.as_uri()]
        subprocess.run([browser, *flags.split(), *size, *where], check=True, capture_output=True, timeout=60)


if __name__ == "__main__":
    with scratch_folder() as folder:
        text = run_page(HERE / "tables.md", folder)
        write_whole(IMAGES / "session.svg", screen_svg(session(text), "pac-wrap", width=112))
        shutil.copy(folder / "curve.svg", IMAGES)
        photograph(folder / "report.html", IMAGES / "report.png")
        run_page(HERE / "groups.md", folder)
        shutil.copy(folder / "groups.svg", IMAGES)
