"""Labels and hints of the settings of a training, for the form."""

from collections.abc import Mapping

TASKS: Mapping[str, str] = {
    "regression": "predict a number",
    "classification": "predict a class",
    "forecasting": "forecast a series: the rows are moments in time",
    "language_model": "model text",
}

_ONCE = "A table without an effort is then fitted once: no search of settings, no target's bounds."

METHODS: Mapping[str, tuple[str, str]] = {
    "bbb": (
        "Bayes by Backprop",
        "Learns a distribution over every weight. The settings below are tuned for it.",
    ),
    "mc_dropout": (
        "Monte-Carlo dropout",
        "Drops units at random, in predictions too. Simple, with coarse uncertainty.",
    ),
    "ensemble": (
        "Deep ensemble",
        "Several networks with different starting points. Robust, but each one costs a training.",
    ),
    "laplace": (
        "Laplace approximation",
        "A Gaussian around one good fit, as wide as its curvature says. Cheap; learns its prior.",
    ),
    "swag": ("SWAG", "A Gaussian around one good fit, from the path of the optimiser."),
    "map": (
        "One network, with a prior (MAP)",
        "Estimates the noise in the data, but no epistemic uncertainty.",
    ),
    "mle": ("One network (maximum likelihood)", "As MAP, without a prior against overfitting."),
    "sgld": ("Langevin chains", "Samples the posterior itself. Slow; useful as a reference."),
    "csgld": ("Cyclical Langevin chains", "As Langevin chains, over several modes."),
    "metropolis": ("Random-walk Metropolis", "Exact in the limit, but only for tiny networks."),
}

NETWORKS: Mapping[str, str] = {
    "mlp": "layers of units (MLP)",
    "cnn": "convolutions, for images (CNN)",
    "rnn": "recurrent, for series and text (RNN)",
    "lstm": "recurrent with memory (LSTM)",
    "gru": "recurrent with gates (GRU)",
}

SETTINGS: Mapping[str, tuple[str, str]] = {
    "dataset": ("Data set", ""),
    "target": ("Column to predict", ""),
    "task": ("Task", ""),
    "model": ("Name of the model", "Lower case. A name that exists gets a new version."),
    "method.kind": ("Method", ""),
    "network.kind": ("Network", ""),
    "method.prior.kind": ("Prior", "The distribution of the weights before any data."),
    "likelihood": (
        "Noise",
        "Heteroscedastic: a Gaussian, which may go below 0. Auto: in the range of the values.",
    ),
    "members": ("Members", "Networks whose mixture predicts, fitted together."),
    "inputs.boosted": (
        "Boosted trees",
        "Whether networks read predictions of boosted trees; by default if they gain on the rows.",
    ),
    "weight": ("Row weights", "A column with the weight of each row."),
    "pruning": (
        "Pruned variants",
        "Shares of the weights to remove. Each one gives a smaller, faster variant of the model.",
    ),
    "alias": ("Alias", "A stable name for the new version, such as champion."),
    "out_of_distribution.false_alarm_rate": (
        "False alarms",
        "The share of ordinary rows that may be flagged as out of distribution.",
    ),
    "network.hidden": (
        "Hidden layers",
        "Units of each layer, such as 100, 100. Empty: chosen on a table's rows.",
    ),
    "network.activation": ("Activation", ""),
    "network.channels": ("Channels", "Output channels of each convolution."),
    "network.kernel": ("Kernel", "The side length of each convolution."),
    "network.pool": ("Pooling", "The side length of the square whose maximum is kept."),
    "method.estimator": ("Estimator", "Local has less noise, where the network supports it."),
    "method.initial_sigma": ("Initial sigma", "The initial standard deviation of the weights."),
    "method.prior.sigma": (
        "Prior sigma",
        "The expected size of the weights: a number, or auto to learn it.",
    ),
    "method.kl.direction": ("Direction of the divergence", ""),
    "method.kl.weight": (
        "Weight of the divergence",
        "1 gives the ELBO. A smaller weight fits the data more closely, with less uncertainty.",
    ),
    "method.kl.warmup_epochs": ("Warm-up epochs", "Epochs in which this weight grows from 0."),
    "method.members": ("Members", "The number of networks, trained one after the other."),
    "method.over": ("Uncertain weights", "Those of the last layer are fast; all see more."),
    "method.hessian": ("Curvature", "Kron is one product per layer; full is for small layers."),
    "method.rate": ("Dropout rate", ""),
    "method.prior_sigma": ("Prior sigma", "The expected size of the weights."),
    "training.effort": (
        "Effort",
        "How much is tried to choose a table's recipe on its rows. Epochs are then of each try.",
    ),
    "training.folds": (
        "Folds",
        "Parts of the rows. Networks leave out one each, to compare recipes on it.",
    ),
    "training.epochs": ("Epochs", f"Passes over the training rows. {_ONCE}"),
    "training.batch_size": ("Batch size", "Rows per step."),
    "training.learning_rate": ("Learning rate", "The size of a step. Lower it if a run diverges."),
    "training.schedule": ("Schedule", "How the learning rate falls."),
    "training.optimizer": ("Optimiser", ""),
    "training.momentum": ("Momentum", "Only for SGD."),
    "training.warmup_steps": ("Warm-up steps", "Steps in which the learning rate grows from 0."),
    "training.averaging_steps": (
        "Averaging steps",
        "Steps over which the weights are averaged, for a model of less noise.",
    ),
    "training.gradient_clip": (
        "Gradient clip",
        "Longer gradients are shortened to this length, so that a single step cannot go far.",
    ),
    "training.patience": (
        "Patience",
        f"Epochs without improvement before training stops. {_ONCE}",
    ),
    "training.fine_tune_epochs": ("Epochs per pruned variant", ""),
    "training.refit": (
        "Refit",
        f"Fit again with the stopping rows (of series also the calibration steps). {_ONCE}",
    ),
    "training.seed": ("Seed", "The same seed gives the same model."),
    "training.device": ("Device", "auto, cpu, cuda, or cuda:1."),
    "training.precision": (
        "Precision",
        "Of the products: bfloat16 is faster on GPUs, which auto takes it for.",
    ),
    "training.split": (
        "Split",
        "Rows that score the model. Choose at random unless rows belong to groups or times.",
    ),
    "training.groups": (
        "Groups",
        "A column, such as a region: conformal intervals are right in each of its groups.",
    ),
    "training.class_weight": (
        "Class weights",
        "Balanced: each class counts the same in training, however rare it is.",
    ),
    "training.background": (
        "Background rows",
        "Training rows that are stored with the model to explain its predictions; 0 for none.",
    ),
    "training.validation_fraction": (
        "Validation fraction",
        "The share of the rows that score the model.",
    ),
    "training.calibration_fraction": (
        "Calibration fraction",
        f"The share of the rows that corrects the intervals; 0 for none. {_ONCE}",
    ),
    "training.stopping_fraction": (
        "Stopping fraction",
        f"The share of the rows that decides when to stop. {_ONCE}",
    ),
    "forecast.time": ("Time", "The column with the time of each row."),
    "forecast.key": ("Series", "The column that identifies the series, if there are several."),
    "forecast.horizon": ("Horizon", "Steps ahead."),
    "forecast.context": ("Context", "Past steps that a forecast uses."),
    "forecast.season": ("Season", "Steps after which the pattern repeats; several as 24, 168."),
    "forecast.classics": (
        "Classical methods",
        "Whether exponential smoothing and autoregressions take part in the forecast.",
    ),
    "forecast.identity": (
        "What names a series",
        "How the network tells series apart by their name, beside their values.",
    ),
    "forecast.static": (
        "Constant features",
        "Features that never change within a series, such as a category or a size.",
    ),
    "forecast.past": ("Past only", "Features that are not known ahead."),
    "forecast.holidays": (
        "Holidays",
        "The calendar of a country, as DE, or of its part, as DE-BY.",
    ),
    "forecast.transform": (
        "Transform",
        "The scale of the forecast: log where variation grows with the level, counts for demand.",
    ),
    "language.level": ("Tokens", "Words separated by white space, or characters."),
    "language.max_vocabulary": ("Vocabulary", "The number of most frequent tokens to keep."),
    "language.min_count": ("Least count", "The count a token needs to be kept."),
    "language.steps": ("Window", "Tokens that gradients flow back through."),
}
