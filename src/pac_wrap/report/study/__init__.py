"""Studies for readers: `show_study` for the terminal, `write_study` for a folder of files."""

from pac_wrap.report.study.terminal import show_study
from pac_wrap.report.study.write import write_study

__all__ = ["show_study", "write_study"]
