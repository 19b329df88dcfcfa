"""What models do not know about what they are asked: drift shows here first.

And, where labels come back, whether what they say of their own errors comes true.
"""

from boards.panels import (
    RED,
    YELLOW,
    Json,
    Query,
    dashboard,
    heatmap,
    limits,
    row,
    stat,
    timeseries,
    variable,
)
from boards.queries import MODEL, increase, mean, quantile, rate, ratio

SHARE_BUCKET = f"credence_predict_epistemic_share_bucket{{{MODEL}}}"
SHARE_COUNT = f"credence_predict_epistemic_share_count{{{MODEL}}}"
STRANGE = f"credence_predict_out_of_distribution_rows_total{{{MODEL}}}"
SHARE_BY_MODEL = mean("credence_predict_epistemic_share", "model", f"{{{MODEL}}}")
STRANGE_BY_MODEL = f"{rate(STRANGE, 'model')} / {rate(SHARE_COUNT, 'model')}"
LEVEL_BY_MODEL = f"max by (model) (credence_model_epistemic_share{{{MODEL}}})"
EXPECTED_BY_MODEL = f"max by (model) (credence_model_out_of_distribution_ratio{{{MODEL}}})"
COVERAGE = f"model_version_level:credence_feedback_coverage:max{{{MODEL}}}"
WINDOW = f"model_version:credence_feedback_window_rows:max{{{MODEL}}}"
CALIBRATION = f"model_version:credence_feedback_calibration_error:max{{{MODEL}}}"
LABELLED = f"credence_feedback_rows_total{{{MODEL}}}"
CHANCE = f"3 * sqrt(0.9 * 0.1 / {WINDOW})"
OF_NUMBERS = f"and on (model, version) {COVERAGE}"  # classes have no intervals
VERSION = "{{model}} v{{version}}"

NUMBERS = [
    stat(
        "Rows",
        "Rows predicted per second by the chosen models.",
        f"{rate(SHARE_COUNT)} or vector(0)",
        "rowsps",
    ),
    stat(
        "Epistemic share",
        "Mean epistemic ÷ total variance of the rows: how much of what "
        "is uncertain more data could settle.",
        mean("credence_predict_epistemic_share", "", f"{{{MODEL}}}"),
        "percentunit",
    ),
    stat(
        "Out of distribution",
        "Share of rows stranger than 99 % of the held-out rows of "
        "training; 1 % is expected, alert at 5 %.",
        ratio(STRANGE, SHARE_COUNT),
        "percentunit",
        limits((0.02, YELLOW), (0.05, RED)),
    ),
]

LEVELS = [
    timeseries(
        "Against the level of training",
        "Mean of the rows by model; dashed: the same "
        "on held-out rows when the version was trained.",
        [Query(SHARE_BY_MODEL, "{{model}}"), Query(LEVEL_BY_MODEL, "training · {{model}}")],
        "percentunit",
        dashed="^training",
    ),
    timeseries(
        "Times the level of training",
        "Alert above 2, if the difference is above 0.1 too.",
        [Query(f"({SHARE_BY_MODEL}) / ({LEVEL_BY_MODEL})", "{{model}}")],
        "none",
        thresholds=limits((2, RED)),
    ),
]

SPREAD = [
    heatmap(
        "Distribution",
        "Rows by epistemic share.",
        increase(SHARE_BUCKET, "le"),
        "percentunit",
    ),
    timeseries(
        "Quantiles",
        "Median and 90th percentile over the rows, by model.",
        [
            Query(quantile(0.5, SHARE_BUCKET, "model"), "p50 · {{model}}"),
            Query(quantile(0.9, SHARE_BUCKET, "model"), "p90 · {{model}}"),
        ],
        "percentunit",
    ),
]

STRANGERS = [
    timeseries(
        "Share of rows",
        "By model; dashed: what rows like those of training give.",
        [Query(STRANGE_BY_MODEL, "{{model}}"), Query(EXPECTED_BY_MODEL, "expected · {{model}}")],
        "percentunit",
        dashed="^expected",
        thresholds=limits((0.05, RED)),
    ),
    timeseries(
        "Strange rows",
        "Out-of-distribution rows per second, by model.",
        [Query(rate(STRANGE, "model"), "{{model}}")],
        "rowsps",
    ),
    timeseries(
        "All rows",
        "Rows predicted per second, by model: shares of few rows say little.",
        [Query(rate(SHARE_COUNT, "model"), "{{model}}")],
        "rowsps",
        stacked=True,
    ),
]

HONESTY = [
    timeseries(
        "Coverage of 90 % intervals",
        "Share of the labelled rows in the window inside; dashed: what chance allows "
        "(3 standard deviations), alert below.",
        [
            Query(f'{COVERAGE[:-1]}, level="0.9"}}', VERSION),
            Query(f"0.9 - {CHANCE} {OF_NUMBERS}", f"chance, low · {VERSION}"),
            Query(f"clamp_max(0.9 + {CHANCE}, 1) {OF_NUMBERS}", f"chance, high · {VERSION}"),
        ],
        "percentunit",
        dashed="^chance",
    ),
    timeseries(
        "Coverage of all levels",
        "Share of the labelled rows inside the central interval of each level; numbers only.",
        [Query(COVERAGE, f"{VERSION} · {{{{level}}}}")],
        "percentunit",
    ),
]

SCORES = [
    timeseries(
        "Log likelihood",
        "Mean over the labelled rows in the window, in nats; dashed: of held-out rows when the "
        "version was trained.",
        [
            Query(
                f"max by (model, version) (credence_feedback_log_likelihood{{{MODEL}}})", VERSION
            ),
            Query(
                f"max by (model, version) (credence_feedback_expected_log_likelihood{{{MODEL}}})",
                f"held out · {VERSION}",
            ),
        ],
        "none",
        dashed="^held out",
        below_zero=True,
    ),
    timeseries(
        "Calibration error",
        "Classes: expected calibration error; numbers: mean |coverage − level|. Dashed: what "
        "chance allows of classes, alert above.",
        [Query(CALIBRATION, VERSION), Query(f"2.5 / sqrt({WINDOW})", f"chance · {VERSION}")],
        "percentunit",
        dashed="^chance",
    ),
    timeseries(
        "Labels",
        "Labelled rows per second, by model.",
        [Query(rate(LABELLED, "model"), "{{model}}")],
        "rowsps",
        stacked=True,
    ),
]


def build() -> Json:
    """The dashboard."""
    rows = [
        NUMBERS,
        [row("Epistemic share: epistemic ÷ total variance")],
        LEVELS,
        SPREAD,
        [row("Out of distribution")],
        STRANGERS,
        [row("Honesty: what came true")],
        HONESTY,
        SCORES,
    ]
    return dashboard(
        "credence-uncertainty",
        "Uncertainty",
        "Drift: what models do not know about what they are asked.",
        [variable("model", "Model", "credence_predict_epistemic_share_count")],
        rows,
    )
