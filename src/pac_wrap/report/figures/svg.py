"""A figure as SVG text that can stand in an HTML page beside others."""

import re
from hashlib import sha256
from html import escape
from io import StringIO
from typing import Any, Final

import matplotlib
from matplotlib.figure import Figure

_NO_METADATA: Final = {"Date": None, "Creator": None, "Format": None, "Type": None}
_SETTINGS: Final[dict[Any, Any]] = {"svg.fonttype": "none", "svg.hashsalt": "pac-wrap", "savefig.bbox": None}


def to_svg(figure: Figure, *, alt: str = "", prefix: str | None = None) -> str:
    """Return the figure as one SVG element: text as text, the same bytes every time, nothing loaded.

    Parameters
    ----------
    figure : Figure
        The figure.
    alt : str
        What a screen reader says.
    prefix : str, optional
        How every id starts, so that several figures can stand in one page; by default it comes from the
        content.

    Returns
    -------
    str
        The element.

    Examples
    --------
    >>> from pac_wrap.report.figures import plot_plan
    >>> svg = to_svg(plot_plan([0]).get_figure(), alt="labels against certified rate")
    >>> svg[:4], "<style" in svg, "http://" in svg.replace("http://www.w3.org/", "")
    ('<svg', False, False)
    """
    buffer = StringIO()
    with matplotlib.rc_context(_SETTINGS):
        figure.savefig(buffer, format="svg", metadata=_NO_METADATA)
    text = buffer.getvalue()
    text = text[text.index("<svg") :].rstrip()
    # a style element would reach every element of the page; what it says is inherited from the root as well
    text, replaced = re.subn(r"\s*<defs>\s*<style[^>]*>[^<]*</style>\s*</defs>", "", text, count=1)
    assert replaced
    prefix = f"pw-{sha256(text.encode()).hexdigest()[:10]}-" if prefix is None else prefix
    text = re.sub(r"<[^<>]+>", lambda tag: _prefixed(tag.group(), prefix), text)
    label = f' role="img" aria-label="{escape(alt)}"' if alt else ""
    return text.replace("<svg", f'<svg style="stroke-linejoin:round;stroke-linecap:butt"{label}', 1)


def _prefixed(tag: str, prefix: str) -> str:
    tag = re.sub(r'(\sid=")', rf"\g<1>{prefix}", tag)
    tag = re.sub(r'(href="#)', rf"\g<1>{prefix}", tag)
    return re.sub(r"(url\(#)", rf"\g<1>{prefix}", tag)
