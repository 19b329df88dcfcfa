"""The models' uncertainty on the rows that they predict: it shows drift.

With feedback, it also shows whether the uncertainty was right.
"""

from grafana_foundation_sdk.models.dashboard import Dashboard, VariableSort

from boards.panels import RED, YELLOW, board, buckets, limits, lines, number, variable
from boards.queries import MODEL, increase, mean, quantile, rate, ratio

SHARE_BUCKET = f"credence_predict_epistemic_share_bucket{{{MODEL}}}"
SHARE_COUNT = f"credence_predict_epistemic_share_count{{{MODEL}}}"
OOD_ROWS = f"credence_predict_out_of_distribution_rows_total{{{MODEL}}}"
SHARE_BY_MODEL = mean("credence_predict_epistemic_share", "model", f"{{{MODEL}}}")
OOD_SHARE_BY_MODEL = f"{rate(OOD_ROWS, 'model')} / {rate(SHARE_COUNT, 'model')}"
LEVEL_BY_MODEL = f"max by (model) (credence_model_epistemic_share{{{MODEL}}})"
EXPECTED_BY_MODEL = f"max by (model) (credence_model_out_of_distribution_ratio{{{MODEL}}})"
COVERAGE = f"model_version_level:credence_feedback_coverage:max{{{MODEL}}}"
CALIBRATION = f"model_version:credence_feedback_calibration_error:max{{{MODEL}}}"
EXPECTED_LOG_LIKELIHOOD = f"credence_feedback_expected_log_likelihood{{{MODEL}}}"
LABELLED = f"credence_feedback_rows_total{{{MODEL}}}"
EXPECTED_COVERAGE = f"model_version_level:credence_feedback_expected_coverage:max{{{MODEL}}}"
P_VALUE = f'model_version_level:credence_feedback_coverage_p_value:max{{{MODEL}, level="0.9"}}'
P_VALUE_OF_CLASSES = f"model_version:credence_feedback_calibration_p_value:max{{{MODEL}}}"
ALARM_P_VALUE = f"model_version:credence_feedback_alarm_p_value:max{{{MODEL}}}"
REASONS = f"credence_predict_reasons_total{{{MODEL}}}"
ADAPTED_LEVEL = f"max by (model, version, level) (credence_feedback_adapted_level{{{MODEL}}})"
ADAPTIVE_COVERAGE = (
    f'max by (model, version, level) (credence_feedback_adaptive_coverage{{{MODEL}, level="0.9"}})'
)
CONFORMAL_COVERAGE = ADAPTIVE_COVERAGE.replace("adaptive", "conformal")
BOUND_BY_MODEL = f"model:credence_model_out_of_distribution_bound:max{{{MODEL}}}"
SHARE_BOUND_BY_MODEL = f"model:credence_model_epistemic_share_bound:max{{{MODEL}}}"
LOSS = f"model:credence_predict_expected_loss:mean1h{{{MODEL}}}"
LOSS_ERROR = f"model:credence_predict_expected_loss:error1h{{{MODEL}}}"
PROMISED_LOSS = f"model:credence_model_expected_loss:max{{{MODEL}}}"
VERSION = "{{model}} v{{version}}"

NUMBERS = [
    number(
        "Rows",
        "Rows predicted per second by the chosen models.",
        "rowsps",
        f"{rate(SHARE_COUNT)} or vector(0)",
    ),
    number(
        "Epistemic share",
        "Mean epistemic ÷ total variance of the rows: the part that more data could remove.",
        "percentunit",
        mean("credence_predict_epistemic_share", "", f"{{{MODEL}}}"),
    ),
    number(
        "Out of distribution",
        "Share of rows above the score of 99 % of the held-out rows. Alert at 5 %, or at what "
        "chance allows.",
        "percentunit",
        ratio(OOD_ROWS, SHARE_COUNT),
        limits((0.02, YELLOW), (0.05, RED)),
    ),
]

LEVELS = [
    lines(
        "Against the level of training",
        "Mean over the rows, by model. Dashed: mean over the held-out rows of training, and the "
        "most that chance allows. Alert above.",
        "percentunit",
        {
            "{{model}}": SHARE_BY_MODEL,
            "training · {{model}}": LEVEL_BY_MODEL,
            "chance · {{model}}": SHARE_BOUND_BY_MODEL,
        },
        dashed="^(training|chance)",
    ),
    lines(
        "Times the level of training",
        "Alert above 2, if the difference is also above 0.1 and above chance.",
        "none",
        {"{{model}}": f"({SHARE_BY_MODEL}) / ({LEVEL_BY_MODEL})"},
        thresholds=limits((2, RED)),
    ),
]

SPREAD = [
    buckets(
        "Distribution", "Rows by epistemic share.", "percentunit", increase(SHARE_BUCKET, "le")
    ),
    lines(
        "Quantiles",
        "Median and 90th percentile over the rows, by model.",
        "percentunit",
        {
            "p50 · {{model}}": quantile(0.5, SHARE_BUCKET, "model"),
            "p90 · {{model}}": quantile(0.9, SHARE_BUCKET, "model"),
        },
    ),
]

EXPECTED_LOSS = [
    lines(
        "Against what training promised",
        "Mean over the rows of the last hour, by model. Classes: share of wrong labels; numbers: "
        "standard deviation. Dashed: mean over the held-out rows of training, and the most that "
        "chance allows. Alert above, if it is also a quarter more than promised.",
        "none",
        {
            "{{model}}": LOSS,
            "training · {{model}}": PROMISED_LOSS,
            "chance · {{model}}": f"{PROMISED_LOSS} + 6 * {LOSS_ERROR}",
        },
        dashed="^(training|chance)",
    ),
    lines(
        "Times what training promised",
        "Alert above 1.25, if chance does not allow it.",
        "none",
        {"{{model}}": f"{LOSS} / {PROMISED_LOSS}"},
        thresholds=limits((1.25, RED)),
    ),
]

OUT_OF_DISTRIBUTION = [
    lines(
        "Share of rows",
        "By model. Dashed: the share that rows like those of training have, and the most that "
        "chance allows.",
        "percentunit",
        {
            "{{model}}": OOD_SHARE_BY_MODEL,
            "expected · {{model}}": EXPECTED_BY_MODEL,
            "chance · {{model}}": BOUND_BY_MODEL,
        },
        dashed="^(expected|chance)",
        thresholds=limits((0.05, RED)),
    ),
    lines(
        "Out-of-distribution rows",
        "Per second, by model.",
        "rowsps",
        {"{{model}}": rate(OOD_ROWS, "model")},
    ),
    lines(
        "All rows",
        "Rows predicted per second, by model. Shares of few rows are uncertain.",
        "rowsps",
        {"{{model}}": rate(SHARE_COUNT, "model")},
        stacked=True,
    ),
]

REASONS_OF_ROWS = [
    lines(
        "Why rows are unlike training",
        "Flagged rows per second, by their first reason: a value outside the range of training, "
        "a level that training did not see, a missing value where none was, or values that are "
        "unusual together. The columns are in the answers alone.",
        "rowsps",
        {"{{model}} · {{code}}": rate(REASONS, "model, code")},
        stacked=True,
    ),
    lines(
        "Share of each reason",
        "Flagged rows ÷ all rows, by the code of the first reason.",
        "percentunit",
        {
            "{{model}} · {{code}}": f"{rate(REASONS, 'model, code')} "
            f"/ on (model) group_left {rate(SHARE_COUNT, 'model')}"
        },
    ),
]

COVERAGES = [
    lines(
        "Coverage of 90 % intervals",
        "Of labelled rows in the window. Dashed: of the held-out rows of training.",
        "percentunit",
        {
            VERSION: f'{COVERAGE[:-1]}, level="0.9"}}',
            f"held out · {VERSION}": f'{EXPECTED_COVERAGE[:-1]}, level="0.9"}}',
        },
        dashed="^held out",
    ),
    lines(
        "Is it chance?",
        "Probability of such labels if nothing has changed: of as few in the 90 % intervals; "
        "classes: of as many or as few correct. Dashed: alert at or below.",
        "none",
        {
            VERSION: f"{P_VALUE} or on (model, version) {P_VALUE_OF_CLASSES}",
            f"alert · {VERSION}": ALARM_P_VALUE,
        },
        dashed="^alert",
        log=True,
    ),
    lines(
        "Coverage of all levels",
        "Share of labelled rows inside the central interval of each level. Regression only.",
        "percentunit",
        {f"{VERSION} · {{{{level}}}}": COVERAGE},
    ),
]

ADAPTED = [
    lines(
        "Level of adaptive intervals",
        "The level at which adaptive intervals of each level are given now, so that the labels "
        "lie in them as often as they should. Far from its own level: train on newer rows.",
        "percentunit",
        {f"{VERSION} · {{{{level}}}}": ADAPTED_LEVEL},
    ),
    lines(
        "Coverage of adaptive 90 % intervals",
        "Of labelled rows in the window, at the level known when each was predicted. Dashed: "
        "of conformal intervals, which do not adapt.",
        "percentunit",
        {VERSION: ADAPTIVE_COVERAGE, f"conformal · {VERSION}": CONFORMAL_COVERAGE},
        dashed="^conformal",
    ),
]

SCORES = [
    lines(
        "Log likelihood",
        "Mean over labelled rows in the window, nats. Dashed: held-out rows of training.",
        "none",
        {
            VERSION: f"max by (model, version) (credence_feedback_log_likelihood{{{MODEL}}})",
            f"held out · {VERSION}": f"max by (model, version) ({EXPECTED_LOG_LIKELIHOOD})",
        },
        dashed="^held out",
        below_zero=True,
    ),
    lines(
        "Calibration error",
        "Classes: ECE; numbers: mean |coverage − level|. Of few rows it is large by chance.",
        "percentunit",
        {VERSION: CALIBRATION},
    ),
    lines(
        "Labels",
        "Labelled rows per second, by model.",
        "rowsps",
        {"{{model}}": rate(LABELLED, "model")},
        stacked=True,
    ),
]


def build() -> Dashboard:
    """The dashboard of what the models say about their own uncertainty."""
    counts = "credence_predict_epistemic_share_count"
    rows = {
        "": [NUMBERS],
        "Epistemic share: epistemic ÷ total variance": [LEVELS, SPREAD],
        "Expected loss: the error that predictions expect": [EXPECTED_LOSS],
        "Out of distribution": [OUT_OF_DISTRIBUTION, REASONS_OF_ROWS],
        "Calibration on labelled rows": [COVERAGES, ADAPTED, SCORES],
    }
    return board(
        "Uncertainty",
        "Drift: how uncertain the models are about the rows that they predict.",
        [variable("model", counts, VariableSort.ALPHABETICAL_ASC)],
        rows,
    )
