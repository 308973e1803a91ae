"""The pages of the documentation, for the tests that run their examples."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def python_blocks(page: str) -> list[str]:
    """Return the Python examples of a page."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
