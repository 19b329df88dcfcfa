"""Temporary files of real processes: of the living they stay, of the killed they go."""

import subprocess
import sys
from pathlib import Path

import pytest

from core.process.scratch import Scratch

pytestmark = pytest.mark.stack

OTHER = """
import sys
from pathlib import Path
from core.process.scratch import Scratch
scratch = Scratch(Path(sys.argv[1]))
(scratch.path / "half.arrow").write_text("half of something")
print(scratch.path, flush=True)
sys.stdin.read()
"""


def test_what_a_killed_process_left_goes_and_what_a_living_one_has_stays(tmp_path: Path) -> None:
    own = Scratch(tmp_path)
    (own.path / "mine").touch()
    command = [sys.executable, "-c", OTHER, str(tmp_path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        folder = Path(other.stdout.readline().strip())
        own.remove_leftovers()
        assert (folder / "half.arrow").exists()
        other.kill()
        other.wait()
    own.remove_leftovers()
    assert not folder.exists()
    assert (own.path / "mine").exists()
    own.close()
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]
