"""What a refreshed data set changes: the schedules that follow its source."""

from sqlalchemy import case, update
from sqlalchemy.orm import Session

from core.clock import database_now
from core.database.schema import ScheduleRow


def data_refreshed(session: Session, dataset: str, variant: str, owner: str) -> None:
    """Let the owner's schedules of this source go on with the new data set.

    Those without a cron expression are due now. It happens in the transaction that adds the data
    set, so that no refresh is missed and none counts twice.

    Args:
        variant: of the data set; equal for all that are read from a source in the same way.
    """
    follows = ScheduleRow.variant == variant, ScheduleRow.owner == owner
    due = case((ScheduleRow.cron.is_(None), database_now(session)), else_=ScheduleRow.next_due)
    session.execute(update(ScheduleRow).where(*follows).values(dataset=dataset, next_due=due))
