"""Schedules on both databases, with a clock that the test sets."""

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy.orm import Session

from core.database.database import Database
from core.jobs.specs import Scheduled, TrainSpec
from core.schedules.schedules import Schedules
from core.schedules.starts import Starts
from models.config import ModelConfig
from models.evaluation.gate import GateConfig

NOON = datetime(2026, 11, 26, 12, 0, tzinfo=UTC)


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self, session: Session) -> datetime:
        return self.now

    def move(self, **by: float) -> None:
        self.now += timedelta(**by)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def schedules(database: Database, clock: Clock) -> Schedules:
    return Schedules(database, clock=clock)


@pytest.fixture
def starts(database: Database, clock: Clock) -> Starts:
    return Starts(database, clock)


def scheduled_spec(dataset: str, name: str = "nightly") -> TrainSpec:
    config = ModelConfig(target="y")
    return TrainSpec(
        model="square",
        dataset=dataset,
        config=config,
        alias="champion",
        scheduled=Scheduled(schedule=name, gate=GateConfig(), configs=(config,)),
    )


@pytest.fixture
def scheduled(dataset_id: str) -> TrainSpec:
    return scheduled_spec(dataset_id)
