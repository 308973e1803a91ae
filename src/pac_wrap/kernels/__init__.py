"""The passes over scores that everything else waits for: in C where it was compiled, else in NumPy.

Both give the same, to the last bit; decision 18 says why there are two.
"""

import os
from functools import cache

from pac_wrap.kernels.plain import CHUNK, LEADING, MODULUS, Codes, Floats, Inside, Plain, narrowed

__all__ = ["CHUNK", "LEADING", "MODULUS", "Codes", "Floats", "Inside", "Plain", "kernels", "narrowed"]


@cache
def kernels() -> Plain:
    """Return the fastest kernels there are; with PAC_WRAP_KERNELS=plain those in NumPy."""
    if os.environ.get("PAC_WRAP_KERNELS") != "plain":
        from pac_wrap.kernels.native import Native, library

        try:
            return Native(library())
        except OSError:  # not compiled, or for another system
            pass
    return Plain()
