"""What the tests of pages do with a browser."""

from pathlib import Path
from typing import Any

from support.patience import until

# texts of siblings that overlap by more than a pixel, and texts of a figure that leave it
CLASHES = """
const clashes = [];
const box = node => { const r = node.getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom]; };
const overlap = (a, b) => Math.min(a[2], b[2]) - Math.max(a[0], b[0]) > 1.5
  && Math.min(a[3], b[3]) - Math.max(a[1], b[1]) > 1.5;
const pairs = (nodes) => {
  const boxes = nodes.map(box);
  for (let i = 0; i < nodes.length; i++) for (let j = i + 1; j < nodes.length; j++)
    if (overlap(boxes[i], boxes[j])) clashes.push([nodes[i].textContent, nodes[j].textContent]);
};
const seen = node => node.getClientRects().length > 0 && getComputedStyle(node).position !== 'absolute';
for (const parent of document.querySelectorAll('body, main, section, figure, ul, div, table, tbody, tr'))
  pairs([...parent.children].filter(node => seen(node) && node.textContent.trim()));
for (const svg of document.querySelectorAll('svg')) {
  if (!seen(svg)) continue;
  const texts = [...svg.querySelectorAll('text')].filter(node => node.textContent.trim());
  const [left, top, right, bottom] = box(svg);
  for (const text of texts) {
    const [l, t, r, b] = box(text);
    if (Math.min(l - left, t - top, right - r, bottom - b) < -1.5) clashes.push([text.textContent]);
  }
  pairs(texts);
}
return clashes;
"""

# the least contrast between a text and what lies behind it
CONTRAST = """
const luminance = colour => {
  const [r, g, b] = colour.match(/[\\d.]+/g).slice(0, 3).map(v => v / 255)
    .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const ground = node => {
  for (; node; node = node.parentElement) {
    const colour = getComputedStyle(node).backgroundColor;
    if (!colour.endsWith(', 0)') && colour !== 'transparent') return colour;
  }
  throw new Error('no background');
};
let least = 21;
for (const node of document.querySelectorAll('main *')) {
  const own = [...node.childNodes].some(child => child.nodeType === 3 && child.data.trim());
  if (!own || !node.getClientRects().length) continue;
  const style = getComputedStyle(node);
  const colour = node instanceof SVGElement ? style.fill : style.color;
  const [high, low] = [luminance(colour), luminance(ground(node))].sort((a, b) => b - a);
  least = Math.min(least, (high + 0.05) / (low + 0.05));
}
return least;
"""

# elements whose content is wider than they are, other than the containers that scroll on purpose
WIDE = """
return [...document.querySelectorAll('main, main *:not(svg *)')]
  .filter(node => node.scrollWidth > node.clientWidth + 1 && node.clientWidth > 0
    && !node.closest('.scroll, thead, svg'))
  .map(node => node.tagName + '.' + node.className);
"""


def show(browser: Any, file: Path, width: int = 1280, scheme: str = "light") -> None:
    """Open a file at a width and in a colour scheme."""
    size = {"width": width, "height": 844 if width < 500 else 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    browser.get(file.as_uri())


def complaints(browser: Any) -> list[str]:
    """Return what the browser's console says."""
    return [entry["message"] for entry in browser.get_log("browser")]


def complains(browser: Any, words: str) -> None:
    """Wait until the console, which hears of things a little later, has said something."""
    until(lambda: any(words in text for text in complaints(browser)), f"the console said {words!r}")


def downloaded(browser: Any, link: Any, folder: Path) -> Path:
    """Click a link, and return the JSON file that it saves.

    The browser reserves the name with an empty file, and moves the whole one over it.
    """
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(folder)})
    link.click()
    until(lambda: any(path.stat().st_size for path in folder.glob("*.json")), "a file was saved")
    (file,) = folder.glob("*.json")
    return file


def dragged(browser: Any, kind: str, x: float, far: float, y: float) -> None:
    """Drag with the mouse or a finger from one place of a line to another, and wait until that was drawn."""
    for step, at in (("Start", x), ("Move", (x + far) / 2), ("Move", far), ("End", far)):
        if kind == "touch":
            points = [] if step == "End" else [{"x": at, "y": y}]
            browser.execute_cdp_cmd(
                "Input.dispatchTouchEvent", {"type": f"touch{step}", "touchPoints": points}
            )
        else:
            name = {"Start": "mousePressed", "Move": "mouseMoved", "End": "mouseReleased"}[step]
            event = {"type": name, "x": at, "y": y, "button": "left", "buttons": 1, "clickCount": 1}
            browser.execute_cdp_cmd("Input.dispatchMouseEvent", event)
    # moves are handed to the page with the next frame
    browser.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
