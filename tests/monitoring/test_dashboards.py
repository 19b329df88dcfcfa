"""The dashboards as files: what the script writes, complete, and laid out without overlap."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from tests.monitoring.running import ROOT, RULES

GRAFANA = ROOT / "docker" / "grafana"
FILES = sorted((GRAFANA / "dashboards").glob("*.json"))
DASHBOARDS = {path.stem: json.loads(path.read_text()) for path in FILES}
PANELS: list[dict[str, Any]] = [
    panel for board in DASHBOARDS.values() for panel in board["panels"] if panel["type"] != "row"
]


def test_the_files_are_what_the_script_writes(tmp_path: Path) -> None:
    script = [sys.executable, str(GRAFANA / "build.py"), str(tmp_path)]
    subprocess.run(script, check=True, timeout=300)
    written = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert {path.name: path.read_text() for path in FILES} == written, "run docker/grafana/build.py"


def test_rules_and_dashboards_ask_for_metrics_that_are_documented() -> None:
    groups = [group for path in RULES for group in yaml.safe_load(path.read_text())["groups"]]
    rules = [rule for group in groups for rule in group["rules"]]
    recorded = {rule.get("record") for rule in rules}
    asked = [rule["expr"] for rule in rules]
    asked += [target["expr"] for panel in PANELS for target in panel["targets"]]
    documented = (ROOT / "docs" / "operations.md").read_text()
    for name in re.findall(r"(?:\w+:)?credence_\w+(?::\w+)?", " ".join(asked)):
        base = re.sub(r"_(bucket|sum|count)$", "", name)
        assert name in recorded or f"`{name}`" in documented or f"`{base}`" in documented, name
