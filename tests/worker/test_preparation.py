"""An idle worker makes its first training as quick as the next one."""

import subprocess
import sys
import time

import pytest
import torch

from worker import preparation

pytestmark = pytest.mark.process

# The modules that the first optimiser imports after the preparation, in a process of its own.
IMPORTED = """
import sys, torch
from worker.preparation import prepare
prepare()
before = set(sys.modules)
torch.optim.Adam([torch.zeros(1)], fused=True)
print(*sorted(set(sys.modules) - before))
"""


def test_the_first_optimiser_imports_nothing_more() -> None:
    command = [sys.executable, "-c", IMPORTED]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() == []
    slow = IMPORTED.replace("\nprepare()\n", "\n")
    found = subprocess.run([*command[:2], slow], capture_output=True, text=True, check=True)
    assert "torch._dynamo" in found.stdout.split(), "else there is nothing to prepare"


def test_a_worker_that_stops_at_once_prepares_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    monkeypatch.setattr(preparation, "IDLE_SECONDS", 0.05)
    monkeypatch.setattr(torch.optim, "Adam", made.append)
    with preparation.preparing():
        pass
    time.sleep(0.2)
    assert not made
    with preparation.preparing():
        while not made:
            time.sleep(0.01)
