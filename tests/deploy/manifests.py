"""Manifests for Kubernetes, as kubectl builds them from the project's folders."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

Manifest = dict[str, Any]

FOLDER = Path(__file__).parents[2] / "deploy" / "kubernetes"
VERSIONS = ("1.31", "1.37")
LOCKED_DOWN = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}


def build(name: str) -> list[Manifest]:
    if not shutil.which("kubectl"):
        pytest.skip("no kubectl on the PATH (Debian: kubernetes-client)")
    command = ["kubectl", "kustomize", str(FOLDER / name)]
    built = subprocess.run(command, capture_output=True, text=True, check=True)
    return list(yaml.safe_load_all(built.stdout))
