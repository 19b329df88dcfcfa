"""One virtual environment per peer, so that their pinned versions do not conflict.

    python -m benchmarks.peers.environments [NAME ...]        creates missing environments

`requirements/NAME.txt` pins every package.
"""

import argparse
import subprocess
import sys
from pathlib import Path

REQUIREMENTS = Path(__file__).parent / "requirements"
ENVIRONMENTS = Path(__file__).parents[1] / ".venvs"
NAMES = tuple(sorted(path.stem for path in REQUIREMENTS.glob("*.txt")))
INSTALL_SECONDS = 1200
_DONE = ".installed"  # a copy of the requirements that were installed


class NotInstalled(Exception):
    """A peer has no environment; the message says why."""


def python(name: str) -> Path:
    """The interpreter of a peer's environment.

    Raises:
        NotInstalled: it is not installed with the present requirements.
    """
    if not _is_current(name):
        raise NotInstalled(
            f"{name} is not installed: python -m benchmarks.peers.environments {name} installs it"
        )
    return ENVIRONMENTS / name / "bin" / "python"


def install(name: str) -> None:
    """Create the environment, unless it exists with the present requirements.

    Raises:
        NotInstalled: pip fails; the message has the last line of its error.
    """
    if _is_current(name):
        return
    directory = ENVIRONMENTS / name
    pip = [str(directory / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    try:
        _run([sys.executable, "-m", "venv", "--clear", str(directory)])
        _run([*pip, "--disable-pip-version-check", "-r", str(_requirements(name))])
    except subprocess.TimeoutExpired as error:
        raise NotInstalled(f"{name}: not installed after {INSTALL_SECONDS} s") from error
    except subprocess.CalledProcessError as error:
        lines = [line for line in error.stderr.splitlines() if "ERROR" in line] or [str(error)]
        raise NotInstalled(f"{name} cannot be installed: {lines[-1]}") from error
    (directory / _DONE).write_text(_requirements(name).read_text())


def pinned(name: str) -> str:
    """The peer's version in its requirements."""
    for line in _requirements(name).read_text().splitlines():
        if line.startswith(f"{name}=="):
            return line.partition("==")[2]
    raise NotInstalled(f"{_requirements(name)} does not pin {name}")


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=INSTALL_SECONDS)


def _requirements(name: str) -> Path:
    return REQUIREMENTS / f"{name}.txt"


def _is_current(name: str) -> bool:
    done = ENVIRONMENTS / name / _DONE
    return done.exists() and done.read_text() == _requirements(name).read_text()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}")
    for name in parser.parse_args().names or NAMES:
        if name not in NAMES:
            parser.error(f"there is no peer {name!r}; there are {', '.join(NAMES)}")
        try:
            install(name)
            print(f"{name}: installed", flush=True)
        except NotInstalled as error:
            print(error, flush=True)


if __name__ == "__main__":
    main()
