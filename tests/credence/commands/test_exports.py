"""The command that exports graphs: what they say of themselves, and what is refused."""

import json
from pathlib import Path

import pytest
import torch

from credence.client import Client
from credence.serving.exports import METADATA, convert
from credence.types import Version
from models.exceptions import InvalidInput
from tests.credence.invoking import command, printed


def test_a_graph_says_what_it_means(client: Client, version: Version, tmp_path: Path) -> None:
    path = tmp_path / "small.pt2"
    options = ("--format", "torch", "--posterior", "mean", "-o", str(path))
    printed("models", "export", "small", "1", *options, url=client.url)
    extra = {METADATA: ""}
    program = torch.export.load(path, extra_files=extra).module()
    about = json.loads(extra[METADATA])
    assert [f["name"] for f in about["features"]] == ["x0", "x1", "kind"]
    assert about["features"][2]["levels"] == ["even", "odd"]
    assert (about["posterior"], about["samples"], about["target"]) == ("mean", 1, "y")
    mean, _, epistemic = program(torch.tensor([[0.5, 1.0, 0.0]] * 2, dtype=torch.float64))
    assert mean[0] == mean[1]
    assert epistemic.tolist() == [0.0, 0.0]


def test_what_has_no_graph_is_refused(client: Client, version: Version, tmp_path: Path) -> None:
    export = ["models", "export", "small", "--format", "torch", "--prune", "0.3"]
    refused = command(*export, url=client.url)
    assert refused.exit_code == 2
    assert "0, 0.5" in refused.stderr  # the variants that exist
    request = {
        "model": "team", "dataset": version["dataset"], "target": "y", "pruning": [],
        "method": {"kind": "ensemble", "members": 2}, "training": {"epochs": 2},
    }  # fmt: skip
    client.wait(client.submit_train(request)["id"], poll_seconds=0.1)
    archive = tmp_path / "team.tar"
    client.export_version("team", 1, archive)
    with pytest.raises(InvalidInput, match="several networks"):
        convert(archive, tmp_path / "x", "torch", posterior="mean")
