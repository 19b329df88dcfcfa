"""What is trained, stored and served: a model of a table's rows, or of texts.

Both have what storing and serving need under the same names: `config`, `task`, `features`,
`inputs`, `classes`, `variants`, `variant`, `with_variants`, `description`, `settle`, `steps`,
`encode`, `predict_rows`, `evaluate` and what they weigh. A third kind joins here, and in
`models.training.train.train` and `models.artifact.files`, which tell them apart by `config.task`.
"""

from models.language.model import BayesianLanguageModel
from models.model import BayesianModel

TrainedModel = BayesianModel | BayesianLanguageModel
"""Everything needed to predict. Frozen: any number of threads may use one instance."""
