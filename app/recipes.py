"""What a training request comes to: the rows it names, and every setting filled in."""

from functools import partial

from app.schemas.training import TrainRequest
from app.submission import find_dataset
from core.context import Context
from core.jobs.specs import TrainSpec
from models.training.recipe import resolve


def settle(context: Context, request: TrainRequest) -> TrainSpec:
    """The request with everything that it leaves out as recommended.

    Raises:
        Invalid: there are no rows of that name, or none are named.
        InvalidData: naming the column or setting that cannot work, with a JSON pointer.
    """
    dataset = find_dataset(context, request)
    load = partial(context.datasets.columns, dataset.id)
    wanted = request.config(dataset.columns, request.method)
    return TrainSpec(
        model=request.model,
        dataset=dataset.id,
        config=resolve(wanted, dataset.columns, dataset.rows, load),
        alias=request.alias,
        metadata=request.metadata,
        given=request.given(),
    )
