"""Row 6: files in the current directory are no code."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.credence.running import environment

NAMES = ("torch", "models", "core", "worker", "numpy", "typer", "structlog", "multiprocessing")
COMMANDS = {
    "script": [str(Path(sys.executable).parent / "credence")],
    "module": [sys.executable, "-m", "credence"],
}


def plant(directory: Path) -> None:
    """Modules and packages that leave a file when they are imported.

    A folder `credence`, as a clone makes it, is not the package either.
    """
    (directory / "credence" / "credence").mkdir(parents=True)
    leave = "import pathlib, os\npathlib.Path(os.environ['TRACES'], __name__).touch()\n"
    for name in NAMES:
        (directory / f"{name}.py").write_text(leave)
    (directory / "app").mkdir()
    (directory / "app" / "__init__.py").write_text(leave)


@pytest.mark.parametrize("command", list(COMMANDS))
def test_a_torch_in_the_current_directory_is_not_run(tmp_path: Path, command: str) -> None:
    planted, traces = tmp_path / "planted", tmp_path / "traces"
    plant(planted)
    traces.mkdir()
    serve = [*COMMANDS[command], "serve", "--port", "0", "--data-dir", str(tmp_path / "data")]
    settings = {"TRACES": str(traces), "CREDENCE_TRAIN_PROCESSES": "2"}
    with subprocess.Popen(
        serve, cwd=planted, env=environment(**settings), stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        try:
            assert process.stdout.readline().startswith("ready on ")
        finally:
            process.terminate()
    assert not list(traces.iterdir())
