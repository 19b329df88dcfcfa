"""What settings of a training mean, in plain words: a label, and what to know before a change."""

from collections.abc import Mapping

TASKS: Mapping[str, str] = {
    "regression": "predict a number",
    "classification": "predict a class",
    "forecasting": "forecast a series: the rows are moments in time",
    "language_model": "model text",
}

METHODS: Mapping[str, tuple[str, str]] = {
    "bbb": (
        "Bayes by Backprop",
        "Learns a distribution over every weight. The settings below are tuned for it.",
    ),
    "mc_dropout": (
        "Monte-Carlo dropout",
        "Leaves units out at random, also when it predicts. Simple; its uncertainty is coarse.",
    ),
    "ensemble": (
        "Deep ensemble",
        "Several networks from different starts. Robust, and as many times as much work.",
    ),
    "swag": ("SWAG", "A Gaussian around one good fit, from the path of the optimiser."),
    "map": ("One network, with a prior (MAP)", "Knows the noise in the data, not its own doubt."),
    "mle": ("One network (maximum likelihood)", "As MAP, and nothing keeps it from overfitting."),
    "sgld": ("Langevin chains", "Draws from the posterior itself. Slow, and a good yardstick."),
    "csgld": ("Cyclical Langevin chains", "As above, and visits several modes."),
    "metropolis": ("Random-walk Metropolis", "Exact in the long run, for tiny networks alone."),
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
    "method.prior.kind": ("Prior", "What is believed of the weights before any data."),
    "likelihood": ("Noise", "Heteroscedastic: how noisy a row is may depend on its features."),
    "weight": ("Row weights", "A column that says how much each row counts."),
    "pruning": (
        "Pruned variants",
        "Shares of the weights to leave out. Each makes a smaller, faster variant of the model.",
    ),
    "alias": ("Alias", "A name for the new version that moves with you, such as champion."),
    "out_of_distribution.false_alarm_rate": (
        "False alarms",
        "The share of ordinary rows that may be flagged as unlike those of training.",
    ),
    "network.hidden": ("Hidden layers", "Units of each layer, such as 100, 100."),
    "network.activation": ("Activation", ""),
    "network.channels": ("Channels", "That come out of each convolution."),
    "network.kernel": ("Kernel", "The side of the square that a convolution looks at."),
    "network.pool": ("Pooling", "The side of the square of which the maximum is kept."),
    "method.estimator": ("Estimator", "Local draws less noise, where the network allows it."),
    "method.initial_sigma": ("Initial sigma", "The width of the weights' distributions at first."),
    "method.sharpening": ("Sharpening", "Of texts: each window shifts the weights drawn for it."),
    "method.prior.sigma": (
        "Prior sigma",
        "How large weights are expected to be: a number, or auto, which learns it.",
    ),
    "method.kl.direction": ("Direction of the divergence", ""),
    "method.kl.weight": (
        "Weight of the divergence",
        "1 is the ELBO. Less fits the data more closely and doubts less.",
    ),
    "method.kl.warmup_epochs": ("Warm-up epochs", "In which that weight grows from 0."),
    "method.members": ("Members", "Networks that are trained one after the other."),
    "method.rate": ("Dropout rate", ""),
    "method.prior_sigma": ("Prior sigma", "How large weights are expected to be."),
    "training.epochs": ("Epochs", "Passes over the rows that are learned from."),
    "training.batch_size": ("Batch size", "Rows per step."),
    "training.learning_rate": ("Learning rate", "The size of a step. Lower it if a run diverges."),
    "training.schedule": ("Schedule", "How the learning rate falls."),
    "training.optimizer": ("Optimiser", ""),
    "training.momentum": ("Momentum", "Of SGD alone."),
    "training.gradient_clip": ("Gradient clip", "Longer gradients are cut to this, in nats."),
    "training.patience": ("Patience", "Epochs without an improvement after which it stops."),
    "training.fine_tune_epochs": ("Epochs per pruned variant", ""),
    "training.refit": ("Fit again", "To the rows that chose when to stop, as well."),
    "training.seed": ("Seed", "The same seed gives the same model."),
    "training.device": ("Device", "auto, cpu, cuda, or cuda:1."),
    "training.split": (
        "Which rows are held out",
        "They score the model. At random is right unless rows belong together, or to a time.",
    ),
    "training.validation_fraction": ("Held out for the scores", "A share of the rows."),
    "training.calibration_fraction": (
        "Held out to calibrate",
        "A share of the rows, by which intervals are widened or narrowed; 0 for none.",
    ),
    "training.stopping_fraction": ("Held out to choose when to stop", "A share of the rows."),
    "forecast.time": ("Time", "The column that tells when a row was."),
    "forecast.key": ("Series", "The column that tells several series apart, if there are several."),
    "forecast.horizon": ("Horizon", "Steps ahead."),
    "forecast.context": ("Context", "Steps back that a forecast looks at."),
    "forecast.season": ("Season", "Steps after which the pattern comes again."),
    "forecast.transform": ("Transform", "Log, for series whose swings grow with their level."),
    "language.level": ("Tokens", "Words between white space, or characters."),
    "language.max_vocabulary": ("Vocabulary", "The most frequent tokens that are known."),
    "language.min_count": ("Least count", "How often a token has to come to be known."),
    "language.steps": ("Window", "Tokens that gradients go back."),
}
