"""Packages of an engine, which are optional: import them, or say in one sentence how to get them."""

from importlib import import_module
from types import ModuleType

from pac_wrap.errors import MissingExtraError


def import_package(name: str, extra: str) -> ModuleType:
    """Return the module of a name; where it is missing, one sentence names the extra that brings it.

    >>> import_package("json.decoder", "spark").__name__
    'json.decoder'
    >>> import_package("no_such_engine", "spark")
    Traceback (most recent call last):
    ...
    pac_wrap.errors.MissingExtraError: no_such_engine is not installed; run pip install "pac-wrap-ad[spark]"
    """
    try:
        return import_module(name)
    except ImportError as error:
        missing = (error.name or name).split(".")[0]
        raise MissingExtraError(
            f'{missing} is not installed; run pip install "pac-wrap-ad[{extra}]"'
        ) from error
