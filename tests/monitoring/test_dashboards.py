"""The dashboards as files: what the script writes, complete, and laid out without overlap."""

import json
import re
import subprocess
import sys
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.monitoring.running import ROOT, RULES

GRAFANA = ROOT / "docker" / "grafana"
FILES = sorted((GRAFANA / "dashboards").glob("*.json"))
DASHBOARDS = {path.stem: json.loads(path.read_text()) for path in FILES}
PANELS = [
    pytest.param(panel, id=f"{name}: {panel['title']}")
    for name, board in DASHBOARDS.items()
    for panel in board["panels"]
    if panel["type"] != "row"
]
Json = dict[str, Any]


def test_the_files_are_what_the_script_writes(tmp_path: Path) -> None:
    script = [sys.executable, str(GRAFANA / "build.py"), str(tmp_path)]
    subprocess.run(script, check=True, timeout=60)
    assert [path.name for path in FILES] == sorted(path.name for path in tmp_path.iterdir())
    for path in FILES:
        written = (tmp_path / path.name).read_text()
        assert path.read_text() == written, f"run docker/grafana/build.py: {path.name} differs"


def test_the_dashboards_are_serving_training_and_uncertainty() -> None:
    assert list(DASHBOARDS) == ["serving", "training", "uncertainty"]
    assert len({board["uid"] for board in DASHBOARDS.values()}) == 3
    provider = yaml.safe_load((GRAFANA / "provisioning/dashboards/credence.yml").read_text())
    assert provider["providers"][0]["options"]["path"] == "/var/lib/dashboards"


@pytest.mark.parametrize("board", DASHBOARDS.values(), ids=DASHBOARDS)
def test_panels_do_not_overlap_and_leave_no_gap(board: Json) -> None:
    places = [panel["gridPos"] for panel in board["panels"]]
    assert len({panel["id"] for panel in board["panels"]}) == len(places)
    for a, b in combinations(places, 2):
        apart = a["x"] + a["w"] <= b["x"] or b["x"] + b["w"] <= a["x"]
        assert apart or a["y"] + a["h"] <= b["y"] or b["y"] + b["h"] <= a["y"], (a, b)
    height = max(place["y"] + place["h"] for place in places)
    assert sum(place["w"] * place["h"] for place in places) == 24 * height


@pytest.mark.parametrize("board", DASHBOARDS.values(), ids=DASHBOARDS)
def test_data_source_and_model_are_chosen_above(board: Json) -> None:
    variables = {variable["name"]: variable for variable in board["templating"]["list"]}
    assert {"datasource", "model"} <= variables.keys()
    sources = yaml.safe_load((GRAFANA / "provisioning/datasources/prometheus.yml").read_text())
    default = next(source for source in sources["datasources"] if source.get("isDefault"))
    assert variables["datasource"]["current"]["value"] == default["uid"]


@pytest.mark.parametrize("panel", PANELS)
def test_every_panel_explains_itself(panel: Json) -> None:
    assert panel["title"]
    assert panel["description"].endswith(".") or panel["description"].endswith(").")
    assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    unit = panel["fieldConfig"]["defaults"].get("unit") or panel["options"].get("yAxis", {}).get(
        "unit"
    )
    assert unit or panel["type"] == "table"
    for target in panel["targets"]:
        assert target["datasource"] == panel["datasource"]
        assert target["legendFormat"] != "__auto" or panel["type"] == "table"


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.stem)
def test_rules_and_dashboards_ask_for_metrics_that_are_documented(path: Path) -> None:
    rules = [r for g in yaml.safe_load(path.read_text())["groups"] for r in g["rules"]]
    recorded = {rule.get("record") for rule in rules} | {
        rule["record"]
        for group in yaml.safe_load(RULES[0].read_text())["groups"]
        for rule in group["rules"]
    }
    targets = [target for panel in PANELS for target in panel.values[0]["targets"]]
    asked = [rule["expr"] for rule in rules] + [target["expr"] for target in targets]
    documented = (ROOT / "docs" / "operations.md").read_text()
    for name in re.findall(r"(?:\w+:)?credence_\w+(?::\w+)?", " ".join(asked)):
        base = re.sub(r"_(bucket|sum|count)$", "", name)
        assert name in recorded or f"`{name}`" in documented or f"`{base}`" in documented, name
