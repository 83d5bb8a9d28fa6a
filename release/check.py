"""Build the wheel and the source distribution, and try them in clean environments: `make release`.

The wheel is built from the source distribution, so that nothing of the repository is missing there. Then, with each Python from 3.11
on that this machine has, the wheel is installed alone and tried, and again with the extras that need no server. All extras have to
resolve. In the end `dist/` has a list of all that the wheel brings with it, with licences, as CycloneDX JSON.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
_DIST = _ROOT / "dist"
_TRY_OUT = Path(__file__).with_name("try_out.py")
_TRIED_EXTRAS = "sql,polars,rocksdb,timeline-server"
_VERSIONS = (11, 12, 13, 14)


def main() -> int:
    """Stops at the first step that fails."""
    shutil.rmtree(_DIST, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", _DIST, _ROOT)
    (wheel,) = _DIST.glob("*.whl")
    with tempfile.TemporaryDirectory() as scratch:
        tried = [minor for minor in _VERSIONS if try_with(minor, wheel, Path(scratch))]
    say(f"{wheel.name} works with Python {', '.join(f'3.{minor}' for minor in tried)}")
    return 0 if tried else 1


def try_with(minor: int, wheel: Path, scratch: Path) -> bool:
    """False where this machine has no such Python."""
    python = find_python(minor)
    if python is None:
        say(f"no Python 3.{minor} here")
        return False
    bare, more = scratch / f"bare-{minor}", scratch / f"more-{minor}"
    for folder, what in ((bare, str(wheel)), (more, f"{wheel}[{_TRIED_EXTRAS}]")):
        run(python, "-m", "venv", folder)
        run(folder / "bin/python", "-m", "pip", "install", "--quiet", what)
        run(folder / "bin/python", "-I", _TRY_OUT, cwd=folder)
    if minor == _VERSIONS[0]:
        for extra in extras_of(wheel):
            run(more / "bin/python", "-m", "pip", "install", "--quiet", "--dry-run", f"{wheel}[{extra}]")
        write_bill_of_materials(bare / "bin/python", wheel)
    return True


def find_python(minor: int) -> Path | None:
    """A Python of that version: on the path, or one of pyenv's."""
    name = f"python3.{minor}"
    candidates = [*Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/{name}"), shutil.which(name)]
    for candidate in filter(None, candidates):
        # A stand-in of pyenv is there for versions that are not in use.
        if subprocess.run([candidate, "-c", ""], capture_output=True, check=False).returncode == 0:
            return Path(candidate)
    return None


def extras_of(wheel: Path) -> list[str]:
    """The extras that users may ask for."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        found = re.findall(r"^Provides-Extra: (.+)$", archive.read(name).decode(), re.MULTILINE)
    return [extra for extra in found if extra not in {"dev", "test"}]


def write_bill_of_materials(python: Path, wheel: Path) -> None:
    """Every component has to name its licence."""
    out = wheel.with_suffix(".cdx.json")
    run(sys.executable, "-m", "cyclonedx_py", "environment", "--output-file", out, python)
    for component in json.loads(out.read_text(encoding="utf-8"))["components"]:
        licences = [
            entry.get("expression") or entry["license"].get("id") or entry["license"]["name"]
            for entry in component.get("licenses", [])
        ]
        if not licences:
            raise SystemExit(f"{component['name']} {component['version']} names no licence")
        say(f"{component['name']} {component['version']}: {', '.join(licences)}")


def run(*command: str | Path, cwd: Path | None = None) -> None:
    say("$ " + " ".join(map(str, command)))
    subprocess.run(command, check=True, cwd=cwd)


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
