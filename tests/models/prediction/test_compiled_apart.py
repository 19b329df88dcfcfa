"""Kernels that a child leaves in numba's cache."""

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from models.prediction.compiled import apart
from models.prediction.compiled.compiler import Compiler, compiler

pytest.importorskip("numba", reason="without numba predictions use torch")


@pytest.fixture(scope="module")
def kernels() -> ModuleType:
    """Compiled once, or read from the disk."""
    assert compiler().wait()
    found = compiler().kernels
    assert found is not None
    return found


def test_each_kernel_that_python_calls_is_looked_for(kernels: ModuleType) -> None:
    modules = Path(apart.__file__).parent.glob("*.py")
    text = "".join(one.read_text() for one in modules if "@jit" not in one.read_text())
    assert all(f"kernels.{name}(" in text for name in apart._CALLED)
    called = {name for name in vars(kernels) if f"kernels.{name}(" in text}
    assert called == set(apart._CALLED)


def test_a_cache_is_complete_once_all_kernels_have_files(
    kernels: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert apart.is_cached(kernels)
    last = getattr(kernels, apart._CALLED[-1])
    (tmp_path / f"shaped_kernels.{last.__qualname__}-1.py311.1.nbc").touch()  # code, no index
    monkeypatch.setattr(type(last.stats), "cache_path", str(tmp_path), raising=False)
    assert not apart.is_cached(kernels)
    for name in apart._CALLED:
        (tmp_path / f"kernels.{getattr(kernels, name).__qualname__}-1.py311.nbi").touch()
    assert apart.is_cached(kernels)


def test_a_child_finds_what_is_cached_and_ends(kernels: ModuleType) -> None:
    assert apart.is_cached(kernels)
    command = [sys.executable, "-P", "-m", "models.prediction.compiled"]
    subprocess.run(command, check=True, timeout=300)


@pytest.mark.usefixtures("kernels")
def test_a_child_that_fails_leaves_the_kernels_to_this_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(apart, "is_cached", lambda _: False)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    other = Compiler()
    other.start(in_child=True)
    assert other.wait()
