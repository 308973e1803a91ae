"""Studies for readers: `show_study` for the terminal, `write_study` for a folder of files."""

from pac_wrap_paper.rendering.files import write_study
from pac_wrap_paper.rendering.text import show_study

__all__ = ["show_study", "write_study"]
