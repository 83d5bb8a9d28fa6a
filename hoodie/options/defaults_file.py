"""The defaults file: options for every job of a machine, which stand behind those of a call."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from hoodie.errors import OptionError
from hoodie.options.registry import is_known
from hoodie.options.settings import NOTHING, unknown_options

CONF_DIR = "HOODIE_CONF_DIR"
DEFAULTS_FILE = "hoodie-defaults.conf"
_LINE = re.compile(r"(?P<key>[^\s=]+)(?:\s*=\s*|\s+)(?P<value>.*)")


def load_defaults() -> Mapping[str, str]:
    """Options of `hoodie-defaults.conf` in the folder that the environment variable HOODIE_CONF_DIR names.

    Lines are `key=value` or `key value`; `#` begins a comment line. Without the variable or the file there are none.

    Raises:
        OptionError: the folder is missing, a line has no value, or a key is unknown; the message has file and line.
    """
    folder = os.environ.get(CONF_DIR, "")
    if not folder:
        return NOTHING
    if not Path(folder).is_dir():
        raise OptionError(f"{CONF_DIR}={folder!r} is not a folder: set it to the one with {DEFAULTS_FILE}, or unset it")
    path = Path(folder) / DEFAULTS_FILE
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return NOTHING
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"{path} cannot be read: {error}") from error
    return MappingProxyType(parse_defaults(text, path=str(path)))


def parse_defaults(text: str, *, path: str) -> dict[str, str]:
    """The options of a defaults file; see `load_defaults`."""
    options: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if not match:
            raise OptionError(f"{path}:{number}: {line!r} has no value, expected key=value or key value")
        key = match["key"]
        if not is_known(key.lower()):
            raise unknown_options([key], f" in {path}:{number}")
        options[key] = match["value"].strip()
    return options
