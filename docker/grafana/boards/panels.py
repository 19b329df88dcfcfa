"""The dashboards' kinds of panel, built with grafana-foundation-sdk.

Queries map a legend to PromQL.
"""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from grafana_foundation_sdk.builders import (
    common,
    dashboard,
    heatmap,
    prometheus,
    stat,
    table,
    timeseries,
)
from grafana_foundation_sdk.models import common as kinds
from grafana_foundation_sdk.models import dashboard as schema
from grafana_foundation_sdk.models import heatmap as heatmap_schema
from grafana_foundation_sdk.models.prometheus import PromQueryFormat, QueryEditorMode

DATASOURCE = schema.DataSourceRef(type_val="prometheus", uid="${datasource}")
COLUMNS = 24  # of Grafana's grid
GREEN, YELLOW, RED = "green", "yellow", "red"

Panel = stat.Panel | timeseries.Panel | heatmap.Panel | table.Panel
P = TypeVar("P", stat.Panel, timeseries.Panel, heatmap.Panel, table.Panel)
Rows = Mapping[str, Sequence[Sequence[Panel]]]  # by heading; the panels of a row have equal widths


def limits(*steps: tuple[float, str]) -> dashboard.ThresholdsConfig:
    """Green below the first step; from each step on, its colour."""
    first = schema.Threshold(color=GREEN)
    later = [schema.Threshold(value, color) for value, color in steps]
    return dashboard.ThresholdsConfig().mode(schema.ThresholdsMode.ABSOLUTE).steps([first, *later])


def lines(
    title: str,
    description: str,
    unit: str,
    queries: Mapping[str, str],
    *,
    thresholds: dashboard.ThresholdsConfig | None = None,
    stacked: bool = False,
    dashed: str = "",
    log: bool = False,
    below_zero: bool = False,
) -> timeseries.Panel:
    """Lines over time.

    Args:
        dashed: regular expression for the names of series to draw dashed: reference levels.
    """
    panel = _panel(timeseries.Panel(), title, description, queries).unit(unit).line_width(1)
    panel.fill_opacity(20 if stacked else 5).show_points(kinds.VisibilityMode.NEVER)
    legend = common.VizLegendOptions().display_mode(kinds.LegendDisplayMode.TABLE)
    panel.legend(legend.show_legend(True).calcs(["lastNotNull", "max"]))
    tooltip = common.VizTooltipOptions().mode(kinds.TooltipDisplayMode.MULTI)
    panel.tooltip(tooltip.sort(kinds.SortOrder.DESCENDING))
    if stacked:
        panel.stacking(common.StackingConfig().mode(kinds.StackingMode.NORMAL).group("A"))
    if log:
        scale = common.ScaleDistributionConfig().type(kinds.ScaleDistribution.LOG)
        panel.scale_distribution(scale.log(10))
    elif not below_zero:
        panel.min(0)
    if thresholds:
        style = common.GraphThresholdsStyleConfig().mode(kinds.GraphThresholdsStyleMode.LINE)
        panel.thresholds(thresholds).thresholds_style(style)
    if dashed:
        style_of = {"fill": "dash", "dash": [8, 6]}
        override = schema.DynamicConfigValue("custom.lineStyle", style_of)
        panel.override_by_regexp(dashed, [override])
    return panel


def number(
    title: str,
    description: str,
    unit: str,
    expr: str,
    thresholds: dashboard.ThresholdsConfig | None = None,
) -> stat.Panel:
    """One number, coloured by its thresholds, with its graph behind it."""
    panel = _panel(stat.Panel(), title, description, {title: expr}).unit(unit).height(4)
    panel.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    mode = schema.FieldColorModeId.THRESHOLDS if thresholds else schema.FieldColorModeId.FIXED
    panel.color_scheme(dashboard.FieldColor().mode(mode).fixed_color("text"))
    return panel.thresholds(thresholds or limits()).graph_mode(kinds.BigValueGraphMode.AREA)


def buckets(title: str, description: str, unit: str, expr: str) -> heatmap.Panel:
    """The buckets of a histogram over time, as counts per interval."""
    form = PromQueryFormat.HEATMAP
    panel = _panel(heatmap.Panel(), title, description, {"{{le}}": expr}, form)
    colors = heatmap.HeatmapColorOptions().mode(heatmap_schema.HeatmapColorMode.SCHEME)
    panel.color(colors.scheme("Oranges").steps(64)).cell_gap(1).unit(unit)
    panel.filter_values(heatmap.FilterValueRange().le(1e-9)).show_y_histogram()
    return panel.y_axis(heatmap.YAxisConfig().unit(unit))


def series(title: str, description: str, expr: str) -> table.Panel:
    """The series of an instant query, one per row."""
    form = PromQueryFormat.TABLE
    panel = (
        _panel(table.Panel(), title, description, {"__auto": expr}, form)
        .filterable(True)
        .show_header(True)
    )
    hidden = {"excludeByName": {"Time": True}, "renameByName": {}}
    return panel.with_transformation(schema.DataTransformerConfig("organize", options=hidden))


def variable(name: str, labels_of: str, sort: schema.VariableSort) -> dashboard.QueryVariable:
    """A variable with the values of a label; by default all of them."""
    chosen = schema.VariableOption(text=["All"], value=["$__all"])
    choice = dashboard.QueryVariable(name).label(name.capitalize()).datasource(DATASOURCE)
    choice.query(f"label_values({labels_of}, {name})").current(chosen).sort(sort)
    choice.refresh(schema.VariableRefresh.ON_TIME_RANGE_CHANGED)
    return choice.multi(True).include_all(True).all_value(".*")


def board(
    title: str, description: str, variables: Sequence[dashboard.QueryVariable], rows: Rows
) -> schema.Dashboard:
    """A whole dashboard."""
    made = dashboard.Dashboard(f"Credence · {title}").uid(f"credence-{title.lower()}")
    made.description(description).tags(["credence"]).readonly().version(1)
    made.tooltip(schema.DashboardCursorSync.CROSSHAIR).refresh("30s").time("now-3h", "now")
    others = dashboard.DashboardLink("Credence").type(schema.DashboardLinkType.DASHBOARDS)
    made.link(others.tags(["credence"]).keep_time(True))
    alerts = dashboard.AnnotationQuery().name("Alerts").datasource(DATASOURCE).enable(True)
    made.annotation(alerts.expr('ALERTS{alertstate="firing"}').icon_color(RED))
    default = schema.VariableOption(text="Prometheus", value="credence-prometheus")
    source = dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus")
    made.variables([source.current(default), *variables])
    for heading, lots in rows.items():
        if heading:
            made.with_row(dashboard.Row(heading))
        for panel, members in ((panel, lot) for lot in lots for panel in lot):
            made.with_panel(panel.span(COLUMNS // len(members)))
    whole = made.build()
    for number_, placed in enumerate(whole.panels or (), start=1):
        placed.id_val = number_
    return whole


def _panel(
    panel: P,
    title: str,
    description: str,
    queries: Mapping[str, str],
    form: PromQueryFormat = PromQueryFormat.TIME_SERIES,
) -> P:
    panel.title(title).description(description).datasource(DATASOURCE).height(9)
    for letter, (legend, expr) in zip("ABCDEF", queries.items(), strict=False):
        query = prometheus.Dataquery().ref_id(letter).expr(expr).legend_format(legend)
        query.datasource(DATASOURCE).editor_mode(QueryEditorMode.CODE).format(form)
        is_instant = form is PromQueryFormat.TABLE
        panel.with_target(query.instant() if is_instant else query.range())
    return panel
