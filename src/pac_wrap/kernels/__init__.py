"""The passes over scores that everything else waits for: in C where it was compiled, else in NumPy.

Both give the same, to the last bit; decision 18 says why there are two.
"""

import os
import warnings
from functools import cache

from pac_wrap.errors import InputError, PACWrapWarning
from pac_wrap.kernels.bounds import LEAST_NORMAL, before, narrowed, raised
from pac_wrap.kernels.compiled import flushes
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
        except (OSError, RuntimeError) as error:  # RuntimeError: no thread can be started
            if wanted:
                raise InputError(
                    f"PAC_WRAP_KERNELS is native, but the library cannot be loaded: {error};"
                    " install again where there is a C compiler, or unset it"
                ) from error
            # one that was never compiled is nothing to warn of
            if not isinstance(error, FileNotFoundError):
                warnings.warn(
                    f"the compiled kernels cannot be used, so NumPy does the same more slowly: {error};"
                    " install the package again, or set PAC_WRAP_KERNELS=plain",
                    PACWrapWarning,
                    stacklevel=2,
                )
    return Plain()
