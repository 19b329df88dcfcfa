"""Tells the owner of a model that rows without labels leave what its training promised."""

from collections.abc import Sequence

from core.database.database import Database
from core.datasets.dataset import Dataset
from core.registry.registry import Version
from core.webhooks.event_types import EventType
from core.webhooks.outbox import tell_once


def tell_drift(
    database: Database, version: Version, dataset: Dataset, reasons: Sequence[str]
) -> None:
    """Tell of reasons, if there are any: once per webhook, version and data set.

    A data set of another owner, with whom the model is shared, is that owner's business.
    """
    if not reasons or dataset.owner != version.owner:
        return
    about = {"model": version.model, "version": version.version, "dataset": dataset.id}
    subject = f"{version.model}/{version.version}/{dataset.id}"
    with database.begin() as session:
        data = about | {"reasons": list(reasons)}
        tell_once(session, version.owner, EventType.DRIFT_FOUND, subject, data)
