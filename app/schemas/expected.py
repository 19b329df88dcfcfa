"""Scores expected without labels, in responses."""

from pydantic import Field

from app.schemas.common import Response, is_none


class ExpectedScore(Response):
    """One score."""

    expected: float | None = Field(description="what the score of these rows will be")
    lower: float | None = Field(description="end of its interval; null without a bound")
    upper: float | None = Field(description="end of its interval; null without a bound")
    promised: float | None = Field(
        description="of the held-out rows, when the version was trained; null if it did not keep it"
    )
    leaves: bool = Field(description="whether the promised score is better than all the interval")
    actual: float | None = Field(
        None, exclude_if=is_none, description="of the rows that have a label, if any have one"
    )


class UnlikeResponse(Response):
    """How many rows are unlike those of training."""

    share: float
    promised: float = Field(description="share of rows like those of training that is flagged")
    leaves: bool = Field(
        description="whether the share is five times the promised one, and above what chance allows"
    )


class ExpectedResponse(Response):
    """The scores to expect of a version on rows whose truth is not known.

    They are as good as the calibration is on these rows, and do not hold where rows are unlike
    those of training (`unlike`). If labels follow from the features otherwise than in training,
    only labels can show it.
    """

    model: str
    version: int
    prune: float
    dataset: str
    rows: int = Field(description="rows used; of more, some drawn at random")
    dataset_rows: int
    seed: int = Field(description="of the choice of the rows")
    level: float = Field(description="probability of the intervals")
    scores: dict[str, ExpectedScore] = Field(
        description="by name: `accuracy`, `log_likelihood` (nats), `brier`; or `rmse`, `mae` (the "
        "target's unit), `log_likelihood`, `coverage_0.9` and `conformal_coverage_0.9`, the shares "
        "inside the 90 % intervals"
    )
    unlike: UnlikeResponse
    labelled_rows: int = Field(description="rows whose label is known: of `actual`, nothing else")
    alert: bool = Field(description="whether something leaves what training promised")
    reasons: list[str] = Field(description="what leaves it; empty without an alert")
    notes: list[str] = Field(description="what the answer cannot say")
