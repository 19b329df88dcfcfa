"""What is trained, stored and served, whatever it predicts: a table's rows or texts."""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from models.config import FeatureConfig, Json, ModelConfig
from models.features import Columns, InputColumn
from models.prediction.prediction import ClassName, PredictOptions
from models.variant import Variant


@runtime_checkable
class TrainedModel(Protocol):
    """Everything needed to predict. Frozen: any number of threads may use one instance."""

    @property
    def config(self) -> ModelConfig: ...

    @property
    def task(self) -> str: ...

    @property
    def features(self) -> tuple[FeatureConfig, ...]: ...

    @property
    def inputs(self) -> tuple[InputColumn, ...]:
        """What `encode` takes."""
        ...

    @property
    def classes(self) -> tuple[ClassName, ...] | None: ...

    @property
    def default_seed(self) -> int: ...

    @property
    def variants_by_prune(self) -> Mapping[float, Variant]: ...

    @property
    def variants(self) -> tuple[float, ...]:
        """Stored pruning fractions, 0.0 (the full posterior) first."""
        ...

    @property
    def num_weights(self) -> int: ...

    @property
    def num_bytes(self) -> int:
        """Memory that the posteriors hold."""
        ...

    @property
    def device(self) -> torch.device: ...

    @property
    def history(self) -> tuple[Json, ...]: ...

    @property
    def notes(self) -> tuple[str, ...]: ...

    @property
    def description(self) -> Json:
        """What the registry and the API say about a version."""
        ...

    def with_variants(self, variants: Mapping[float, Variant]) -> "TrainedModel":
        """The same model with other posteriors."""
        ...

    def variant(self, prune: float) -> Variant: ...

    def settle(self, options: PredictOptions) -> PredictOptions:
        """The same options with what was left open filled in, once they are known to be possible.

        Raises:
            InvalidInput: for an option that this model does not have.
            UnknownVariant: for a pruning fraction that is not stored.
        """
        ...

    def steps(self, columns: Columns) -> int:
        """Times that the network runs for each row: the length of the longest text; else 1."""
        ...

    def encode(self, columns: Columns) -> Tensor:
        """Rows as `predict_rows` takes them."""
        ...

    def predict_rows(self, x: Tensor, options: PredictOptions) -> Any:
        """A `Prediction`, or of texts a `TextPrediction`."""
        ...

    def evaluate(self, columns: Columns, *, prune: float = 0.0) -> Json:
        """Scores on labelled rows."""
        ...
