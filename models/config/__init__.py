"""Every hyper-parameter, defined once: its name, type, range and default.

Plain frozen dataclasses, so that a notebook can build them without a web framework. The ranges are
``annotated_types`` metadata: pydantic checks them where JSON comes in and OpenAPI shows them.
``None`` means "the recommended value for this data set": `models.training.recipe.resolve` fills it
in.
"""

from models.config.methods import BBBConfig as BBBConfig
from models.config.methods import ChainConfig as ChainConfig
from models.config.methods import CyclicalSGLDConfig as CyclicalSGLDConfig
from models.config.methods import DropoutConfig as DropoutConfig
from models.config.methods import EnsembleConfig as EnsembleConfig
from models.config.methods import GaussianPriorConfig as GaussianPriorConfig
from models.config.methods import KLConfig as KLConfig
from models.config.methods import LaplaceConfig as LaplaceConfig
from models.config.methods import MAPConfig as MAPConfig
from models.config.methods import MethodConfig as MethodConfig
from models.config.methods import MetropolisConfig as MetropolisConfig
from models.config.methods import MLEConfig as MLEConfig
from models.config.methods import PriorConfig as PriorConfig
from models.config.methods import ScaleMixturePriorConfig as ScaleMixturePriorConfig
from models.config.methods import SGLDConfig as SGLDConfig
from models.config.methods import SWAGConfig as SWAGConfig
from models.config.model import FeatureConfig as FeatureConfig
from models.config.model import FeatureType as FeatureType
from models.config.model import ForecastConfig as ForecastConfig
from models.config.model import GivenLikelihood as GivenLikelihood
from models.config.model import Identity as Identity
from models.config.model import InputsConfig as InputsConfig
from models.config.model import LanguageConfig as LanguageConfig
from models.config.model import LikelihoodConfig as LikelihoodConfig
from models.config.model import LikelihoodName as LikelihoodName
from models.config.model import ModelConfig as ModelConfig
from models.config.model import Pruning as Pruning
from models.config.model import ScaleName as ScaleName
from models.config.model import StoredConfig as StoredConfig
from models.config.model import SupportConfig as SupportConfig
from models.config.model import Task as Task
from models.config.model import Transform as Transform
from models.config.model import ZonedTime as ZonedTime
from models.config.networks import Activation as Activation
from models.config.networks import ConvolutionalConfig as ConvolutionalConfig
from models.config.networks import MLPConfig as MLPConfig
from models.config.networks import NetworkConfig as NetworkConfig
from models.config.networks import PartConfig as PartConfig
from models.config.networks import RecurrentConfig as RecurrentConfig
from models.config.ranges import STRICT as STRICT
from models.config.ranges import ColumnName as ColumnName
from models.config.ranges import Fraction as Fraction
from models.config.ranges import Json as Json
from models.config.ranges import Scale as Scale
from models.config.ranges import Width as Width
from models.config.training import FALSE_ALARMS as FALSE_ALARMS
from models.config.training import Effort as Effort
from models.config.training import OutOfDistributionConfig as OutOfDistributionConfig
from models.config.training import Precision as Precision
from models.config.training import Split as Split
from models.config.training import SplitBy as SplitBy
from models.config.training import SplitTime as SplitTime
from models.config.training import TrainingConfig as TrainingConfig
