"""Graphs for other runtimes: what they answer, and what is refused."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from credence.cli import app
from credence.client import Client
from credence.serving.exports import METADATA, convert
from credence.types import Version
from models.exceptions import InvalidInput
from tests.credence.running import credence, environment

CASES = ("pruned",)  # the others of `export_cases` are run by hand: tracing takes seconds


def test_graphs_answer_what_the_engine_does(tmp_path: Path) -> None:
    """Columns of every type with gaps, in both formats.

    Answers are float32, whose rounding is 6e-8; a difference of nearly equal means, the epistemic
    variance, loses two digits more.
    """
    command = [sys.executable, "-m", "tests.credence.commands.export_cases", str(tmp_path), *CASES]
    done = subprocess.run(
        command, env=environment(), capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 0, done.stderr
    errors = json.loads(done.stdout)
    assert len(errors) == 2 * 2
    assert max(errors.values()) < 1e-5, errors


def test_the_command_writes_a_graph_with_what_it_means(
    client: Client, version: Version, tmp_path: Path
) -> None:
    path = tmp_path / "small.pt2"
    options = ("--format", "torch", "--posterior", "mean", "-o", str(path))
    made = credence("models", "export", "small", "1", *options, url=client.url)
    assert made.returncode == 0, made.stderr
    extra = {METADATA: ""}
    program = torch.export.load(path, extra_files=extra).module()
    about = json.loads(extra[METADATA])
    assert [f["name"] for f in about["features"]] == ["x0", "x1", "kind"]
    assert about["features"][2]["levels"] == ["even", "odd"]
    assert (about["posterior"], about["samples"], about["target"]) == ("mean", 1, "y")
    mean, _, epistemic = program(torch.tensor([[0.5, 1.0, 0.0]] * 2, dtype=torch.float64))
    assert mean[0] == mean[1]
    assert epistemic.tolist() == [0.0, 0.0]


def test_what_has_no_graph_is_refused_before_it_is_traced(
    client: Client, version: Version, tmp_path: Path
) -> None:
    archive = tmp_path / "small.tar"
    client.export_version("small", 1, archive)
    command = ["models", "export", "small", "--format", "torch", "--prune", "0.3"]
    refused = CliRunner().invoke(app, [*command, "--url", client.url])
    assert refused.exit_code == 2
    assert "stored are 0, 0.5" in refused.stderr
    request = {
        "model": "team", "dataset": version["dataset"], "target": "y", "pruning": [],
        "method": {"kind": "ensemble", "members": 2}, "training": {"epochs": 2},
    }  # fmt: skip
    client.wait(client.submit_train(request)["id"], poll_seconds=0.1)
    client.export_version("team", 1, archive)
    with pytest.raises(InvalidInput, match="several networks"):
        convert(archive, tmp_path / "x", "torch", posterior="mean")
