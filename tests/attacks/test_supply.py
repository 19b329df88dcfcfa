"""Row 12: what is installed is what was locked."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCKS = (
    "requirements.lock",
    *(f"docker/{name}.lock" for name in ("requirements", "training", "torch", "cuda")),
)
SUM = re.compile(r"^    --hash=sha256:[0-9a-f]{64}(?: \\)?$")
PIN = re.compile(r"^[a-z0-9.-]+==[\w.!+]+ \\$")


def entries(lock: str) -> dict[str, set[str]]:
    """The sums of each package of a lock."""
    found: dict[str, set[str]] = {}
    name = ""
    for line in (ROOT / lock).read_text().splitlines()[1:]:
        if PIN.match(line):
            name = line.removesuffix(" \\")
            found[name] = set()
        else:
            assert SUM.match(line), f"{lock}: {line!r} has no sum: run `make lock`"
            found[name].add(line.strip().removesuffix(" \\"))
    return found


@pytest.mark.parametrize("lock", [*LOCKS, "docker/build.lock", "docker/store/rclone.lock"])
def test_every_package_has_a_sum(lock: str) -> None:
    assert all(entries(lock).values())


def test_images_have_what_was_tested() -> None:
    tested = entries("requirements.lock")
    for lock in ("docker/requirements.lock", "docker/training.lock", "docker/torch.lock"):
        for pin, sums in entries(lock).items():
            assert tested[pin] == sums
    cuda = entries("docker/cuda.lock")
    assert all(
        pin in tested
        for pin in cuda
        if not pin.startswith(("nvidia", "cuda", "triton", "setuptools"))
    )


@pytest.mark.parametrize("image", ["api", "worker"])
def test_images_install_nothing_without_a_sum(image: str) -> None:
    text = (ROOT / "docker" / f"{image}.Dockerfile").read_text()
    assert "EXTRA_INDEX" not in text.upper().replace("-", "_")
    installs = [line for line in text.splitlines() if "pip" in line and "install" in line]
    for line in installs:
        is_ours = "--no-deps --no-build-isolation ./credence ./credence/scoring ." in line
        assert is_ours or "--require-hashes" in line or "mount=type=cache" in line, line
    assert len(installs) >= 2


def test_a_wrong_sum_is_refused(tmp_path: Path) -> None:
    """With a file of the right name and another content, where an attacker may put one."""
    pin = next(
        pin for pin in entries("docker/requirements.lock") if pin.startswith("annotated-types")
    )
    name, version = pin.split("==")
    forged = tmp_path / f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
    forged.write_bytes(b"PK\x05\x06" + bytes(18))
    command = [sys.executable, "-m", "pip", "download", "--no-index", "--no-deps"]
    command += ["--require-hashes", "--find-links", str(tmp_path), "--dest", str(tmp_path / "out")]
    lock = tmp_path / "one.lock"
    sums = sorted(entries("docker/requirements.lock")[pin])
    lock.write_text(f"{pin} {' '.join(sums)}\n")
    done = subprocess.run(
        [*command, "-r", str(lock)],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin", "PIP_CONFIG_FILE": "/dev/null"},
    )
    assert done.returncode != 0
    assert "DO NOT MATCH THE HASHES" in done.stderr
