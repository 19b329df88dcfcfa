"""Grafana's JSON for the few kinds of panel that the dashboards are made of.

Schema: Grafana 12 (`schemaVersion` 41). What is left out takes Grafana's defaults.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any

Json = dict[str, Any]

DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
COLUMNS = 24  # of Grafana's grid
GREEN, YELLOW, RED = "green", "yellow", "red"


@dataclass(frozen=True)
class Query:
    """A query and how its series are called."""

    expr: str
    legend: str = ""
    kind: str = "range"  # or "instant"
    format: str = "time_series"  # or "heatmap", "table"

    def target(self, letter: str) -> Json:
        """As a panel holds it."""
        return {
            "refId": letter,
            "datasource": DATASOURCE,
            "editorMode": "code",
            "expr": self.expr,
            "legendFormat": self.legend or "__auto",
            "format": self.format,
            "range": self.kind == "range",
            "instant": self.kind == "instant",
        }


def limits(*steps: tuple[float, str]) -> Json:
    """Green below the first step; from each step on, its colour."""
    first: Json = {"color": GREEN, "value": None}
    later = [{"color": color, "value": value} for value, color in steps]
    return {"mode": "absolute", "steps": [first, *later]}


def timeseries(
    title: str,
    description: str,
    queries: Sequence[Query],
    unit: str,
    *,
    thresholds: Json | None = None,
    stacked: bool = False,
    dashed: str = "",
    log: bool = False,
    below_zero: bool = False,
) -> Json:
    """Lines over time. Series whose name matches `dashed` are levels to compare with."""
    custom: Json = {
        "drawStyle": "line",
        "lineWidth": 1,
        "fillOpacity": 20 if stacked else 5,
        "showPoints": "never",
        "spanNulls": False,
        "stacking": {"mode": "normal" if stacked else "none", "group": "A"},
        "scaleDistribution": {"type": "log", "log": 10} if log else {"type": "linear"},
        "thresholdsStyle": {"mode": "line" if thresholds else "off"},
    }
    defaults: Json = {"unit": unit, "custom": custom}
    if not log and not below_zero:
        defaults["min"] = 0
    if thresholds:
        defaults["thresholds"] = thresholds
    options = {
        "legend": {
            "displayMode": "table",
            "placement": "bottom",
            "calcs": ["lastNotNull", "max"],
            "showLegend": True,
        },
        "tooltip": {"mode": "multi", "sort": "desc"},
    }
    overrides = [_dashed(dashed)] if dashed else []
    return _panel("timeseries", title, description, queries, defaults, options, overrides)


def stat(
    title: str, description: str, expr: str, unit: str, thresholds: Json | None = None
) -> Json:
    """One number, coloured by its thresholds, with its course behind it."""
    color = {"mode": "thresholds"} if thresholds else {"mode": "fixed", "fixedColor": "text"}
    defaults = {"unit": unit, "color": color, "thresholds": thresholds or limits()}
    options = {
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "colorMode": "value",
        "graphMode": "area",
        "textMode": "auto",
        "justifyMode": "auto",
        "orientation": "auto",
    }
    return _panel("stat", title, description, [Query(expr, title)], defaults, options)


def heatmap(title: str, description: str, expr: str, unit: str) -> Json:
    """The buckets of a histogram over time, as counts per interval."""
    options = {
        "calculate": False,
        "cellGap": 1,
        "color": {"mode": "scheme", "scheme": "Oranges", "steps": 64, "reverse": False},
        "filterValues": {"le": 1e-9},
        "legend": {"show": True},
        "rowsFrame": {"layout": "auto"},
        "tooltip": {"mode": "single", "yHistogram": True, "showColorScale": False},
        "yAxis": {"axisPlacement": "left", "unit": unit, "reverse": False},
    }
    queries = [Query(expr, "{{le}}", format="heatmap")]
    return _panel("heatmap", title, description, queries, {}, options)


def table(title: str, description: str, expr: str, hidden: Sequence[str] = ()) -> Json:
    """The series of an instant query, a row each."""
    organize = {"excludeByName": dict.fromkeys(("Time", *hidden), True), "renameByName": {}}
    panel = _panel(
        "table",
        title,
        description,
        [Query(expr, kind="instant", format="table")],
        {"custom": {"align": "auto", "filterable": True}},
        {"showHeader": True, "cellHeight": "sm"},
    )
    return panel | {"transformations": [{"id": "organize", "options": organize}]}


def row(title: str) -> Json:
    """A heading above the panels that follow."""
    return {"type": "row", "title": title, "collapsed": False, "panels": []}


def variable(name: str, label: str, labels_of: str) -> Json:
    """A choice among the values of a label, all of them at first."""
    query = f"label_values({labels_of}, {name})"
    return {
        "type": "query",
        "name": name,
        "label": label,
        "datasource": DATASOURCE,
        "definition": query,
        "query": {"query": query, "refId": "variable"},
        "refresh": 2,
        "sort": 3 if name == "samples" else 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": ["All"], "value": ["$__all"]},
        "options": [],
        "regex": "",
        "hide": 0,
    }


def dashboard(
    uid: str,
    title: str,
    description: str,
    variables: Sequence[Json],
    rows: Sequence[Sequence[Json]],
) -> Json:
    """A whole dashboard: the panels of a row share its width, and are as high as its kind needs."""
    return {
        "uid": uid,
        "title": f"Credence · {title}",
        "description": description,
        "tags": ["credence"],
        "schemaVersion": 41,
        "version": 1,
        "editable": False,
        "graphTooltip": 1,
        "refresh": "30s",
        "timezone": "browser",
        "time": {"from": "now-3h", "to": "now"},
        "timepicker": {},
        "fiscalYearStartMonth": 0,
        "links": [_links()],
        "annotations": {"list": [_alerts()]},
        "templating": {"list": [_datasource(), *variables]},
        "panels": _arranged(rows),
    }


def _arranged(rows: Sequence[Sequence[Json]]) -> list[Json]:
    panels: list[Json] = []
    y = 0
    for members in rows:
        height = {"row": 1, "stat": 4}.get(members[0]["type"], 9)
        edges = [COLUMNS * i // len(members) for i in range(len(members) + 1)]
        for panel, x, end in zip(members, edges, edges[1:], strict=False):
            place = {"h": height, "w": end - x, "x": x, "y": y}
            panels.append({"id": len(panels) + 1, "gridPos": place} | panel)
        y += height
    return panels


def _panel(  # noqa: PLR0917 - in the order of the JSON
    kind: str,
    title: str,
    description: str,
    queries: Sequence[Query],
    defaults: Json,
    options: Json,
    overrides: Sequence[Json] = (),
) -> Json:
    return {
        "type": kind,
        "title": title,
        "description": description,
        "datasource": DATASOURCE,
        "targets": [q.target(letter) for q, letter in zip(queries, ascii_uppercase, strict=False)],
        "fieldConfig": {"defaults": defaults, "overrides": list(overrides)},
        "options": options,
    }


def _dashed(pattern: str) -> Json:
    style = {"id": "custom.lineStyle", "value": {"fill": "dash", "dash": [8, 6]}}
    return {"matcher": {"id": "byRegexp", "options": pattern}, "properties": [style]}


def _datasource() -> Json:
    return {
        "type": "datasource",
        "name": "datasource",
        "label": "Data source",
        "query": "prometheus",
        "current": {"text": "Prometheus", "value": "credence-prometheus"},
        "options": [],
        "refresh": 1,
        "regex": "",
        "multi": False,
        "includeAll": False,
        "hide": 0,
    }


def _alerts() -> Json:
    return {
        "name": "Alerts",
        "datasource": DATASOURCE,
        "enable": True,
        "expr": 'ALERTS{alertstate="firing"}',
        "iconColor": RED,
        "step": "60s",
        "titleFormat": "{{alertname}}",
        "textFormat": "{{model}} {{instance}}",
        "useValueForTime": False,
    }


def _links() -> Json:
    return {
        "type": "dashboards",
        "title": "Credence",
        "tags": ["credence"],
        "asDropdown": False,
        "includeVars": False,
        "keepTime": True,
        "targetBlank": False,
        "icon": "external link",
        "tooltip": "",
        "url": "",
    }
