"""Makes this processor take subnormal numbers for zeros, as torch can, with a few lines of C."""

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

SOURCE = """\
#if defined(__SSE2__)
#include <xmmintrin.h>
void flush(int on)
{
    unsigned both = 0x8040; /* results and operands */
    _mm_setcsr(on ? _mm_getcsr() | both : _mm_getcsr() & ~both);
}
#elif defined(__aarch64__)
void flush(int on)
{
    unsigned long long state, both = 1ULL << 24;
    __asm__ volatile("mrs %0, fpcr" : "=r"(state));
    state = on ? state | both : state & ~both;
    __asm__ volatile("msr fpcr, %0" : : "r"(state));
}
#else
#error "it is not known here how this processor is told to flush"
#endif
"""


def in_c(folder: Path) -> Callable[[bool], bool]:
    """Return what switches flushing on or off in the thread that calls it, and says whether it can."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler on the path to switch the processor with")
    source, library = folder / "flush.c", folder / "flush.so"
    source.write_text(SOURCE)
    done = subprocess.run(
        ["cc", "-O1", "-shared", "-fPIC", "-o", library, source], capture_output=True, text=True
    )
    if done.returncode:
        pytest.skip(f"this processor cannot be told to flush subnormal numbers: {done.stderr[-200:]}")
    switch = ctypes.CDLL(str(library)).flush
    switch.restype, switch.argtypes = None, [ctypes.c_int]

    def flush(on: bool) -> bool:
        switch(on)
        return True

    return flush


def in_torch() -> Callable[[bool], bool]:
    """Return the same, done by torch."""
    torch = pytest.importorskip("torch", reason="torch is not installed (make deep)")
    flush: Callable[[bool], bool] = torch.set_flush_denormal
    return flush
