"""What the tests of pages do with a browser."""

from pathlib import Path
from typing import Any


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
