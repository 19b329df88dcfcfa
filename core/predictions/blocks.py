"""How many rows of many are predicted at a time."""

from models.model import TrainedModel
from models.prediction.options import BatchOptions

BLOCK_BYTES = 2**25  # of inputs and predictions in memory at a time
MAX_BLOCK_ROWS = 2**13  # between two looks at whether to stop
MAX_EXPLAINED_ROWS = 2**6  # each is some hundred rows of work


def block_rows(model: TrainedModel, options: BatchOptions) -> int:
    """The rows that fit into a block with their encoding and their predictions."""
    points = 0 if options.density is None else options.density.points
    asked = len(options.exceeds) + len(options.quantiles) + 2 * points
    most = MAX_EXPLAINED_ROWS if options.explain else MAX_BLOCK_ROWS
    return max(1, min(most, BLOCK_BYTES // (model.bytes_per_row + 8 * asked)))
