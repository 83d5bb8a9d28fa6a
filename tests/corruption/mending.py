"""Reading a table that may be damaged, asking the doctor of the command line, and doing what it says."""

import os
import re
import shlex
import shutil

import hoodie
from hoodie.cli.__main__ import main
from hoodie.errors import HoodieError
from hoodie.storage.local import LocalStorage
from tests.corruption.damages import findings

ROUNDS = 5
"""A way out may have several steps: each mends what the doctor says then."""


def rows(table, **query):
    return sorted(table.scan(**query).to_arrow().to_pylist(), key=repr)


def read(path):
    """The rows of a snapshot, or the error."""
    try:
        return rows(hoodie.open_table(path))
    except HoodieError as error:
        return error


def doctor(path, capsys):
    capsys.readouterr()
    status = main(["doctor", str(path), "--json"])
    out = capsys.readouterr()
    assert out.out, out.err
    return status, findings(out.out)


def mend_all(path, copies, bad, values, capsys):
    """Do what the doctor says until it says nothing more, or for `ROUNDS`: its last status and findings but notes. `copies`: what to
    restore, and from where.
    """
    status = 1
    for _ in range(ROUNDS):
        mend(path, copies, bad[0], values, capsys)
        status, found = doctor(path, capsys)
        bad = [each for each in found if each["level"] != "note"]
        if not bad:
            break
    return status, bad


def mend(path, copies, finding, values, capsys):
    """Do what the doctor says."""
    action = finding["mend"]
    assert action, finding
    command = re.search(r"`hoodie ([^`]*)`", action)
    if command is not None and not action.startswith("Restore "):
        words = shlex.split(command[1])
        words = [re.sub(r"^(.*)=VALUE$", lambda found: f"{found[1]}={values[found[1]]}", word) for word in words]
        capsys.readouterr()
        assert main(words) == 0, (words, capsys.readouterr())
    elif action.startswith("Restore "):
        assert "from a copy" in action
        damaged, whole = copies
        shutil.rmtree(damaged)
        shutil.copytree(whole, damaged)
    else:
        assert action.startswith(("Delete ", "Remove ")), action
        found = path / finding["path"]
        shutil.rmtree(found) if found.is_dir() else found.unlink()


class Refusing(LocalStorage):
    """A storage on which a file or a folder cannot be read."""

    def __init__(self, root, path, number):
        super().__init__(root)
        self.refused = (path, number)

    def _refuse(self, path):
        if path == self.refused[0]:
            raise OSError(self.refused[1], os.strerror(self.refused[1]), f"{self.uri}/{path}")

    def read(self, path):
        self._refuse(path)
        return super().read(path)

    def open_input(self, path, *, mapped=True):
        self._refuse(path)
        return super().open_input(path, mapped=mapped)

    def list(self, path, *, recursive=False):
        self._refuse(path)
        return super().list(path, recursive=recursive)
