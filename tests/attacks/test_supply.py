"""Row 12: what is installed is what was locked."""

import re
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
    others = ("nvidia", "cuda", "triton", "setuptools")
    assert {p for p in entries("docker/cuda.lock") if not p.startswith(others)} <= tested.keys()


@pytest.mark.parametrize("image", ["api", "worker"])
def test_images_install_nothing_without_a_sum(image: str) -> None:
    text = (ROOT / "docker" / f"{image}.Dockerfile").read_text()
    assert "EXTRA_INDEX" not in text.upper().replace("-", "_")
    installs = [line for line in text.splitlines() if "pip" in line and "install" in line]
    for line in installs:
        is_ours = "--no-deps --no-build-isolation ./credence ./credence/scoring ." in line
        assert is_ours or "--require-hashes" in line or "mount=type=cache" in line, line
    assert len(installs) >= 2
