"""The passes over scores that everything else waits for: in C where it was compiled, else in NumPy.

Both give the same, to the last bit; decision 18 says why there are two.
"""

import os
from functools import cache

from pac_wrap.errors import InputError
from pac_wrap.kernels.bounds import LEAST_NORMAL, before, flushes, narrowed, raised
from pac_wrap.kernels.plain import BITS, MODULUS, Codes, Floats, Inside, Plain

__all__ = [
    "BITS",
    "LEAST_NORMAL",
    "MODULUS",
    "Codes",
    "Floats",
    "Inside",
    "Plain",
    "before",
    "flushes",
    "kernels",
    "narrowed",
    "raised",
]


@cache
def kernels() -> Plain:
    """Return the fastest kernels there are, or those that PAC_WRAP_KERNELS names: native or plain."""
    wanted = os.environ.get("PAC_WRAP_KERNELS", "")
    if wanted not in ("", "native", "plain"):
        raise InputError(
            f"PAC_WRAP_KERNELS must be native or plain, got {wanted!r}; unset it for the fastest"
        )
    if wanted != "plain":
        from pac_wrap.kernels.native import Native, library

        try:
            return Native(library())
        except (OSError, AttributeError) as error:  # not compiled, or for another system
            if wanted:
                raise InputError(
                    f"PAC_WRAP_KERNELS is native, but the library cannot be loaded: {error};"
                    " install again where there is a C compiler, or unset it"
                ) from error
    return Plain()
