"""Draw the pictures of the documents: demo, session, curve, alarms, report and explorer, from real runs.

Usage: python docs/guide/pictures.py (with PAC_WRAP_DATA set; the report needs chromium)
"""

import json
import re
import shutil
import subprocess
from html import unescape
from io import StringIO
from pathlib import Path

from PIL import Image
from rich.console import Console, Group, RenderableType
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

from pac_wrap.base.files import scratch_folder, write_whole
from pac_wrap.cli.demo import run_demo, show_demo
from run import BLOCK, HERE, run_page

IMAGES = HERE.parent / "images"
SHOWN = ("calibrate scores.parquet", "evaluate")
# of a report, its explorer alone
ALONE = """<style>
main > :not([aria-labelledby=thresholds]) { display: none }
#thresholds, #thresholds ~ :not(figure, form), fieldset { display: none }
main { padding: 1rem 1.5rem } section { border: 0; padding: 0 } form { margin: 0 }
</style>"""
BLOCKS = " ▁▂▃▄▅▆▇█"
# a cell of rich's drawings, and how far it reaches below the line that its letters stand on
CELL, DESCENT = (12.2, 24.4), 4.4
TEXT = re.compile(
    r'<text (?P<style>class="[^"]*") x="(?P<left>[^"]*)" y="(?P<base>[^"]*)"[^>]*>(?P<row>[^<]*)</text>'
)
# where the threshold is dragged to and fro, and how long it rests at an end and in between
DRAGGED, STEPS, REST, STEP = (-9.0, 4.0), 11, 1200, 350


def session(text: str) -> Group:
    """Return the blocks of the page whose commands are shown, as a terminal shows them."""
    blocks = [block["shell"] or "" for block in BLOCK.finditer(text)]
    wanted = [block for block in blocks if re.match(rf"\$ pac-wrap ({'|'.join(SHOWN)})", block)]
    lines = "\n".join(wanted[:1] + wanted[-1:]).splitlines()
    return Group(
        *(Text(line, style="bold" if line.startswith("$") else "", overflow="fold") for line in lines)
    )


def screen_svg(shown: RenderableType, title: str, width: int = 84) -> str:
    """Return an SVG drawing of the terminal's contents that loads nothing from the network."""
    console = Console(
        record=True, width=width, file=StringIO(), force_terminal=True, color_system="truecolor"
    )
    console.print(shown, Text())  # the last line would lose its descenders
    svg = console.export_svg(title=title, theme=DIMMED_MONOKAI)
    return TEXT.sub(bars, re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL))


def bars(text: re.Match[str]) -> str:
    """Return a row of blocks as a drawing: in most fonts the letters leave gaps between the rows."""
    row = unescape(text["row"]).replace("\xa0", " ")
    if not row.strip() or set(row) - set(BLOCKS):
        return text[0]
    left, bottom = float(text["left"]), float(text["base"]) + DESCENT
    heights = [BLOCKS.index(block) * CELL[1] / (len(BLOCKS) - 1) for block in row]
    tops = " ".join(f"V{bottom - height:.2f} h{CELL[0]}" for height in heights)
    outline = f"M{left} {bottom:.2f} {tops} V{bottom:.2f} Z"
    return f'<path {text["style"]} shape-rendering="crispEdges" d="{outline}"/>'


def photograph(page: Path, target: Path, size: tuple[int, int] = (900, 1505), scale: float = 1.0) -> None:
    """Save the top of a page as a picture."""
    browser = shutil.which("chromium")
    if browser is None:
        raise SystemExit("the picture of the report needs chromium (Debian's package: chromium)")
    with scratch_folder() as profile:
        flags = "--headless --no-sandbox --disable-gpu --disable-background-networking --no-first-run"
        look = [f"--window-size={size[0]},{size[1]}", f"--force-device-scale-factor={scale}"]
        look += ["--hide-scrollbars", "--force-color-profile=srgb"]
        where = [f"--user-data-dir={profile}", f"--screenshot={target}", page.as_uri()]
        subprocess.run([browser, *flags.split(), *look, *where], check=True, capture_output=True, timeout=60)


def film(report: Path, moving: Path, still: Path) -> None:
    """Save a report's explorer while its threshold is dragged, and one picture of it."""
    text = report.read_text(encoding="utf-8").replace("</head>", f"{ALONE}</head>")
    # the policy would not let the style above in
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
    places = json.loads(text.partition('id="curve">')[2].partition("</script>")[0])["places"]
    low, high = DRAGGED
    frames = []
    for step in range(STEPS):
        near = low + (high - low) * step / (STEPS - 1)
        start = min(places, key=lambda place: abs(place - near))
        page = report.with_name("explorer.html")
        page.write_text(re.sub(r'"start":[^,]+', f'"start":{start!r}', text), encoding="utf-8")
        photograph(page, report.with_name("frame.png"), (860, 756), 1.5)
        with Image.open(report.with_name("frame.png")) as frame:
            frames.append(frame.convert("RGB"))
    middle = frames[STEPS // 2].quantize(64, dither=Image.Dither.NONE)
    middle.save(still, optimize=True)
    # few colours, the same in all, and an effort that is named, as the usual one differs between versions
    few = [frame.quantize(palette=middle, dither=Image.Dither.NONE).convert("RGB") for frame in frames]
    shown = few + few[-2:0:-1]
    times = [REST if place in (0, STEPS - 1) else STEP for place in range(len(shown))]
    shown[0].save(
        moving,
        save_all=True,
        append_images=shown[1:],
        duration=times,
        loop=0,
        lossless=True,
        quality=80,
        method=4,
    )


if __name__ == "__main__":
    write_whole(IMAGES / "demo.svg", screen_svg(show_demo(run_demo()), "pac-wrap demo"))
    with scratch_folder() as folder:
        text = run_page(HERE / "tables.md", folder)
        write_whole(IMAGES / "session.svg", screen_svg(session(text), "pac-wrap", width=112))
        shutil.copy(folder / "curve.svg", IMAGES)
        photograph(folder / "report.html", IMAGES / "report.png")
        film(folder / "report.html", IMAGES / "explorer.webp", IMAGES / "explorer.png")
    with scratch_folder() as folder:
        run_page(HERE / "traffic.md", folder)
        shutil.copy(folder / "alarms.svg", IMAGES)
