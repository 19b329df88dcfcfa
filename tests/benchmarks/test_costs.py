"""Estimates of what options cost, beside measured CPU time, over the whole range of options."""

import json
import subprocess
import sys

import pytest

CODE = """
import json, sys
import torch
from benchmarks.costs import CLASSES, DEFAULT, NUMBERS, costs, within
torch.set_num_threads(1)
found = [cost for model in sys.argv[1:] for cost in costs(model, rounds=5)]
options = {"4-8-2": NUMBERS, "4-200-200-2": NUMBERS, "4-8-5": [*CLASSES, "actions"]}
assert len(found) == sum(len(options[model]) - 1 for model in sys.argv[1:])
assert DEFAULT not in {cost.option for cost in found}
table = [(cost.model, cost.option, cost.estimated, cost.measured) for cost in found]
print(json.dumps({"two": within(found), "four": within(found, 4.0), "table": table}))
"""


@pytest.mark.process
def test_most_estimates_are_within_a_factor_of_two_and_all_within_four() -> None:
    """Medians of five rounds, in which each option stands between two of the default ones.

    In a process of its own, because checks of types at every call take longer than small networks.
    In its thread's CPU time. What is left of the noise is that of the estimates' own warm-ups, so
    three tenths may be further away than a factor of two: of all models together, since the one
    with classes has but four options, two of which cost 2.2 times less than estimated on some
    processors.
    """
    command = [sys.executable, "-c", CODE, "4-8-2", "4-200-200-2", "4-8-5"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["two"] >= 0.7, found["table"]
    assert found["four"] == 1.0, found["table"]
