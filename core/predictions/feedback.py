"""Feedback: scores of predictions whose labels were sent, and rolling metrics of each version.

The scores of each row (`models.evaluation.metrics`) are stored, the labels are not. The metrics are
of a window: the last `CREDENCE_FEEDBACK_ROWS` labelled rows of a version, of all its variants. The
window is in the database, so every replica reports the same, and a restart loses nothing.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Any

import numpy as np
import torch
from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from core.access import audit
from core.access.callers import EVERYBODY, MODEL, SERVICE, Caller, check_change, owner_of
from core.clock import now
from core.database.database import Database
from core.database.schema import (
    FeedbackRow,
    FeedbackWindowRow,
    Json,
    ModelRow,
    PredictionRow,
    VersionRow,
)
from core.exceptions import NotFound, NotOwner
from core.names import check_identifier, new_id
from core.predictions import adaptation
from core.predictions.window_check import check_window, leaves
from core.registry import versions
from core.webhooks.event_types import EventType
from core.webhooks.outbox import tell
from models.evaluation.adaptive import Labels
from models.evaluation.conformal_rank import Reference
from models.evaluation.group_coverage import coverage_by_group
from models.evaluation.metrics import PerRowScores, calibration_error, summarise
from models.evaluation.weighting import WEIGHT

RECENT = timedelta(days=7)  # versions without newer labels are not in the metrics
MAX_VERSIONS = 5  # of one model; each is a label value of several Prometheus series


@dataclass(frozen=True)
class Rolling:
    """The metrics of a version's window. Without labels, empty, and `updated_at` is None."""

    model: str
    version: int
    metrics: Json
    updated_at: datetime | None


@dataclass(frozen=True)
class Added:
    """Stored feedback.

    Args:
        is_new: False if it replaced earlier feedback on the same prediction.
        new_rows: labelled rows that were not counted before.
    """

    id: str
    is_new: bool
    new_rows: int
    rolling: Rolling


class Feedback:
    """The tables of scores and of windows."""

    def __init__(self, database: Database, window: int, caller: Caller = SERVICE) -> None:
        self._database = database
        self._window = window
        self._caller = caller

    def add(
        self,
        model: str,
        version: int,
        scores: PerRowScores,
        prediction: str | None = None,
        reference: Reference | None = None,
    ) -> Added:
        """Add scores to the window. They replace earlier scores of the same prediction.

        Args:
            reference: the version's calibration rows; None if it has no conformal intervals.

        Raises:
            NotFound: the version was deleted meanwhile.
            NotOwner: the model was only shared with the caller, and feedback changes its metrics;
                or the caller, who predicts with the models of all owners, did not store the
                prediction.
            Unavailable: the database does not answer.
        """
        packed = {name: values[-self._window :].tolist() for name, values in scores.items()}
        rows = len(next(iter(packed.values())))  # at most the window's
        with self._database.begin() as session:
            self._check(session, model, prediction)
            version_row = versions.lock_version(session, model, version, exclusive=True)
            found = _labels_of(session, prediction)
            row = found or FeedbackRow(
                id=new_id("fb"), model=model, version=version, prediction=prediction, rows=0
            )
            new_rows = max(rows - row.rows, 0) if found else len(next(iter(scores.values())))
            row.rows, row.scores, row.created_at = rows, packed, now()
            row.predicted_at = _predicted_at(session, prediction)
            session.add(row)
            session.flush()
            window = self._update_window(session, version_row, new_rows, reference)
            added = Added(row.id, found is None, new_rows, _rolling(window))
            what = {"model": model, "version": version, "rows": rows, "prediction": prediction}
            action = "feedback.create" if added.is_new else "feedback.replace"
            audit.record(session, self._caller, action, row.id, **what)
            self._caller.record(session, added.id, added)
            return added

    def withdraw(self, feedback_id: str) -> None:
        """Delete scores, and compute the metrics of their version's window without them.

        Scores that newer ones moved out of the window do not come back.

        Raises:
            NotFound: there are no such scores, or the caller may not see their model.
            NotOwner: as `add`.
            Unavailable: the database does not answer.
        """
        check_identifier("feedback", feedback_id)
        with self._database.begin() as session:
            row = _find(session, feedback_id)
            self._check_visible(session, row)
            self._check(session, row.model, row.prediction)
            version_row = versions.lock_version(session, row.model, row.version, exclusive=True)
            what = {"model": row.model, "version": row.version, "rows": row.rows}
            session.delete(_find(session, feedback_id))
            session.flush()
            if not self._is_empty(session, version_row):
                self._update_window(session, version_row, 0, None)
            audit.record(session, self._caller, "feedback.withdraw", feedback_id, **what)

    def check(self, model: str, prediction: str | None) -> None:
        """Raise what `add` would raise, before the labels are scored."""
        with self._database.begin() as session:
            self._check(session, model, prediction)

    def _check_visible(self, session: Session, row: FeedbackRow) -> None:
        try:
            owner_of(session, self._caller, MODEL, row.model)
        except NotFound:
            raise NotFound("feedback", row.id) from None

    def _check(self, session: Session, model: str, prediction: str | None) -> None:
        """Raise `NotOwner` unless the caller may change the metrics of this model."""
        check_change(session, self._caller, MODEL, model)
        caller = self._caller
        if caller.key is None or caller.owner != EVERYBODY:
            return
        if owner_of(session, caller, MODEL, model) != EVERYBODY and not _stored_by(
            session, caller.key, prediction
        ):
            raise NotOwner(
                f"this key has no owner, and model {model} has: send feedback on predictions that "
                "this key has stored, or use a key of the model's owner"
            )

    def _is_empty(self, session: Session, version: VersionRow) -> bool:
        """Whether no scores are left; then delete the window, too."""
        of_version = (version.model, version.version)
        query = select(FeedbackRow.number).where(
            FeedbackRow.model == version.model, FeedbackRow.version == version.version
        )
        if session.scalars(query.limit(1)).first() is not None:
            return False
        if window := session.get(FeedbackWindowRow, of_version):
            session.delete(window)
        return True

    def rolling(self, model: str, version: int) -> Rolling:
        """The metrics of a version's window."""
        check_identifier("model", model)
        with self._database.read() as session:
            window = session.get(FeedbackWindowRow, (model, version))
            return Rolling(model, version, {}, None) if window is None else _rolling(window)

    def labels(self, model: str, version: int) -> Labels:
        """The labels that the version's adaptive intervals follow."""
        query = select(FeedbackWindowRow.labels).where(
            FeedbackWindowRow.model == model, FeedbackWindowRow.version == version
        )
        with self._database.read() as session:
            return adaptation.from_json(session.scalars(query).one_or_none())

    def recent(self) -> list[Rolling]:
        """The `MAX_VERSIONS` versions of each model with the newest labels within `RECENT`."""
        query = select(FeedbackWindowRow).where(FeedbackWindowRow.updated_at >= now() - RECENT)
        with self._database.read() as session:
            windows = session.scalars(query.order_by(FeedbackWindowRow.updated_at.desc())).all()
        seen: Counter[str] = Counter()
        kept = []
        for window in windows:
            seen[window.model] += 1
            if seen[window.model] <= MAX_VERSIONS:
                kept.append(_rolling(window))
        return kept

    def _update_window(
        self,
        session: Session,
        version: VersionRow,
        new_rows: int,
        reference: Reference | None,
    ) -> FeedbackWindowRow:
        """Delete scores before the window, and write the metrics and the tests of the others."""
        labels = FeedbackRow.model == version.model, FeedbackRow.version == version.version
        newest = select(FeedbackRow.number, FeedbackRow.rows).where(*labels)
        found = session.execute(newest.order_by(FeedbackRow.number.desc())).all()
        newer = accumulate((rows for _, rows in found[:-1]), initial=0)
        inside = [row.number for row, n in zip(found, newer, strict=True) if n < self._window]
        session.execute(delete(FeedbackRow).where(*labels, FeedbackRow.number < inside[-1]))
        query = select(FeedbackRow).where(*labels).order_by(FeedbackRow.number)
        rows = session.scalars(query).all()
        scores = _joined([row.scores for row in rows], self._window)
        held_out = version.description.get("metrics") or {}
        metrics = describe(scores, held_out)
        metrics["expected_log_likelihood"] = held_out.get("log_likelihood")
        before = session.get(FeedbackWindowRow, (version.model, version.version))
        counted = _labels_before(before, metrics["rows"] - new_rows) + new_rows
        metrics["check"] = check_window(scores, counted, self._window, _held_out(version))
        known = adaptation.labels_of(rows)
        _tell_change(session, version, before, metrics["check"])
        metrics |= {} if reference is None else adaptation.describe(known, reference)
        row = FeedbackWindowRow(
            model=version.model,
            version=version.version,
            metrics=metrics,
            updated_at=now(),
            labels=adaptation.to_json(known),
        )
        return session.merge(row)


def describe(scores: PerRowScores, held_out: Mapping[str, Any]) -> Json:
    """The metrics of labelled rows, with their calibration error and the coverage of groups.

    Args:
        held_out: the version's metrics, which name its groups.
    """
    metrics = summarise(scores)
    metrics["calibration_error"] = calibration_error(metrics)
    if groups := held_out.get("coverage_by_group"):
        names = [part["name"] for part in groups["parts"]]
        metrics |= coverage_by_group(scores, groups["column"], names)
    return metrics


def _tell_change(
    session: Session, version: VersionRow, before: FeedbackWindowRow | None, check: Json
) -> None:
    """Tell the model's owner when the tests begin or cease to raise an alarm."""
    was_left = before is not None and leaves(before.metrics.get("check") or {})
    is_left = leaves(check)
    if is_left == was_left:
        return
    event = EventType.COVERAGE_LEFT if is_left else EventType.COVERAGE_BACK
    owner = session.scalars(select(ModelRow.owner).where(ModelRow.name == version.model)).one()
    about = {"model": version.model, "version": version.version, "check": check}
    tell(session, owner, event, f"{version.model}/{version.version}", about)


def _find(session: Session, feedback_id: str) -> FeedbackRow:
    query = select(FeedbackRow).where(FeedbackRow.id == feedback_id)
    row = session.scalars(query).one_or_none()
    if row is None:
        raise NotFound("feedback", feedback_id)
    return row


def _stored_by(session: Session, key: str, prediction: str | None) -> bool:
    if prediction is None:
        return False
    query = select(PredictionRow.key).where(PredictionRow.id == prediction)
    return session.scalars(query).one_or_none() == key


def _labels_of(session: Session, prediction: str | None) -> FeedbackRow | None:
    if prediction is None:
        return None
    query = select(FeedbackRow).where(FeedbackRow.prediction == prediction)
    return session.scalars(query).one_or_none()


def _predicted_at(session: Session, prediction: str | None) -> datetime | None:
    if prediction is None:
        return None
    query = select(PredictionRow.created_at).where(PredictionRow.id == prediction)
    return session.scalars(query).one_or_none()


def _labels_before(window: FeedbackWindowRow | None, rows: int) -> int:
    """How many rows were labelled before; as many as there are, if that was not counted."""
    counted = window.metrics.get("check", {}).get("labels") if window else None
    return max(rows, 0) if counted is None else int(counted)


def _held_out(version: VersionRow) -> list[Json]:
    """The metrics of each variant on the held-out rows."""
    variants = version.description.get("variants") or [version.description]
    found = [variant.get("metrics") or {} for variant in variants]
    return [metrics for metrics in found if metrics.get("rows")]


def _joined(parts: Sequence[Mapping[str, Any]], most: int) -> PerRowScores:
    """The scores of the last `most` rows of the parts; labels without a weight have weight 1."""
    weighed = any(WEIGHT in part for part in parts)
    shared = set(parts[0]).intersection(*parts)  # an older release had fewer
    names = [name for name in parts[-1] if name in shared - {WEIGHT}]
    filled = [part if WEIGHT in part else {**part, WEIGHT: _ones(part)} for part in parts]
    return {
        name: torch.from_numpy(
            np.concatenate([np.array(part[name], dtype=np.float64) for part in filled])[-most:]
        )
        for name in [*names, *([WEIGHT] if weighed else [])]
    }


def _ones(part: Mapping[str, Any]) -> list[float]:
    return [1.0] * len(next(iter(part.values())))


def _rolling(window: FeedbackWindowRow) -> Rolling:
    return Rolling(window.model, window.version, window.metrics, window.updated_at)
