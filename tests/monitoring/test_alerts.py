"""Alerts fire and clear, and dashboards ask for what exists."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from benchmarks.verification.alarms import EVIDENCE, MIN_ROWS
from tests.http_server import Answer, http_server
from tests.monitoring.running import ALERTMANAGER, PROMETHEUS, ROOT, RULES, alertmanager, program
from tests.waiting import wait_until

TESTS = sorted((PROMETHEUS / "tests").glob("*.yml"))
ALERTS = {
    rule["alert"]: rule
    for group in yaml.safe_load(RULES[1].read_text())["groups"]
    for rule in group["rules"]
}
RUNBOOK = (ROOT / "docs" / "operations.md").read_text()


def heading(alert: str) -> str:
    """`ApiDown` → `Alert: API down`, but for capitals."""
    return "alert: " + re.sub(r"(?<!^)(?=[A-Z])", " ", alert).lower()


def check(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.stack
def test_the_configuration_is_valid_and_alerts_fire_and_clear_as_their_tests_say() -> None:
    promtool = program("promtool")
    check(promtool, "check", "config", str(PROMETHEUS / "prometheus.yml"))
    check(promtool, "check", "rules", "--lint-fatal", *map(str, RULES))
    check(promtool, "test", "rules", *map(str, TESTS))
    check(program("amtool"), "check-config", str(ALERTMANAGER / "alertmanager.yml"))


def test_every_alert_is_shown_to_fire_and_to_clear_again() -> None:
    tests = [test for path in TESTS for test in yaml.safe_load(path.read_text())["tests"]]
    cases = [test["alert_rule_test"] for test in tests]
    for alert in ALERTS:
        courses = [
            [bool(at.get("exp_alerts")) for at in case if at["alertname"] == alert]
            for case in cases
        ]
        assert [False, True, False] in courses, alert


def test_every_alert_leads_to_its_section_of_the_runbook() -> None:
    sections = re.findall(r"^### (alert: .+)$", RUNBOOK.lower(), re.MULTILINE)
    assert sections == [heading(alert) for alert in ALERTS]
    for alert, rule in ALERTS.items():
        assert rule["labels"]["severity"] in ("critical", "warning"), alert
        assert rule["annotations"].keys() == {"summary", "description", "runbook_url"}, alert
        anchor = heading(alert).replace(":", "").replace(" ", "-")
        assert rule["annotations"]["runbook_url"] == f"docs/operations.md#{anchor}"


def test_what_is_inhibited_exists() -> None:
    rules = yaml.safe_load((ALERTMANAGER / "alertmanager.yml").read_text())["inhibit_rules"]
    for rule in rules:
        (source,) = re.findall(r'alertname = "(\w+)"', rule["source_matchers"][0])
        assert source in ALERTS
        wanted = re.findall(r'alertname =~? "([^"]+)"', rule["target_matchers"][0])[0]
        for name in wanted.split("|"):
            matching = [alert for alert in ALERTS if re.fullmatch(name, alert)]
            assert matching, name
            assert source not in matching


@pytest.mark.stack
def test_the_webhook_is_told_the_cause_alone(
    tmp_path: Path,
) -> None:
    received: list[dict[str, Any]] = []

    def receive(_: str, body: bytes) -> Answer:
        received.extend(json.loads(body)["alerts"])
        return Answer()

    with http_server(receive) as receiver, alertmanager(tmp_path, f"{receiver}/hook?a=1&b=2") as at:
        url = f"http://{at}/api/v2/alerts"
        labels = [
            {"alertname": "ApiDown", "severity": "critical"},
            {"alertname": "PredictErrors", "severity": "critical"},
            {"alertname": "DiskNearlyFull", "severity": "warning", "job": "worker"},
        ]
        alerts = [{"labels": each, "annotations": {"summary": "?"}} for each in labels]
        httpx.post(url, json=alerts, timeout=120).raise_for_status()
        wait_until(lambda: len(received) >= 2)
        silenced = httpx.get(url, params={"inhibited": True}, timeout=120)
    assert {alert["labels"]["alertname"] for alert in received} == {"ApiDown", "DiskNearlyFull"}
    states = {alert["labels"]["alertname"]: alert["status"]["state"] for alert in silenced.json()}
    assert states["PredictErrors"] == "suppressed"


@pytest.mark.stack
def test_without_a_secret_nobody_is_told(tmp_path: Path) -> None:
    with alertmanager(tmp_path) as address:
        status = httpx.get(f"http://{address}/api/v2/status", timeout=120).json()
    assert yaml.safe_load(status["config"]["original"])["route"]["receiver"] == "nobody"


@pytest.mark.parametrize("alert", ["OutOfDistributionRising", "EpistemicShareHigh"])
def test_the_alarms_that_are_simulated_are_those_of_the_rules(alert: str) -> None:
    """`docs/verification.md` measures `drift_alarms`; promtool's tests check the evidence."""
    expr = ALERTS[alert]["expr"]
    assert f"evidence1h > {EVIDENCE}" in expr
    assert f"count:increase1h >= {MIN_ROWS}" in expr
    assert re.search(r":(ratio|mean)1h > model:credence_model_\w+_bound:max", expr)
    usual = {"OutOfDistributionRising": "> 5 * model:credence_model_out_of_distribution_ratio:max"}
    assert usual.get(alert, "> 2 * model:credence_model_epistemic_share:max") in expr


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
