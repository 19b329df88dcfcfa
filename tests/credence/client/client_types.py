"""Type checkers know what each client's methods give, though they are written once.

Nothing here is run: `make check` reads it, and an ignored error that is none would be one.
"""

from collections.abc import AsyncIterator, Iterator
from typing import assert_type

from credence import AsyncClient, Client, Prediction, TrainedModel
from credence.client import AsyncTrainedModel
from credence.types import Dataset, Job


async def check(client: Client, other: AsyncClient) -> None:
    """The same methods of both."""
    assert_type(client.dataset("ds_1"), Dataset)
    assert_type(await other.dataset("ds_1"), Dataset)
    assert_type(client.upload("a.csv", delimiter=";", like="ds_2"), Dataset)
    assert_type(client.fix_columns("ds_1", [{"name": "x", "type": "number"}]), Dataset)
    assert_type(client.fix_columns("ds_1", decimal=","), Dataset)
    assert_type(client.predict("m", [{"x": 1}], samples=3), Prediction)
    assert_type(await other.predict("m", [{"x": 1}]), Prediction)
    assert_type(client.train("a.csv", target="y"), TrainedModel)
    client.train("a.csv", target="y", method={"kind": "swag", "rank": 20}, training={"epochs": 5})
    assert_type(await other.train("a.csv", target="y"), AsyncTrainedModel)
    assert_type(await (await other.model("m")).predict([]), Prediction)
    assert_type(client.jobs(status="failed"), Iterator[Job])
    assert_type(other.jobs(), AsyncIterator[Job])


def mistakes(client: Client) -> None:
    """What is no argument, no method, of another type."""
    client.predict("m", [], smaples=3)  # type: ignore[call-arg]
    client.datset("ds_1")  # type: ignore[attr-defined]
    client.dataset(3)  # type: ignore[arg-type]
    client.upload("a.csv", delimitre=";")  # type: ignore[call-arg]
    client.train("a.csv", target="y", trainng={})  # type: ignore[call-arg]
    client.train("a.csv", target="y", training={"epocs": 5})  # type: ignore[typeddict-unknown-key]
    client.train("a.csv", target="y", method={"kind": "swga"})  # type: ignore[typeddict-item]
