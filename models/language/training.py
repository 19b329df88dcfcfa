"""Training a language model from lines: fit, prune and fine-tune, score."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from models.config import EnsembleConfig, LanguageConfig, ModelConfig, TrainingConfig
from models.exceptions import InvalidData
from models.features.columns import Columns
from models.features.splits import split_rows
from models.features.targets import present
from models.inference.bbb import BayesByBackprop, BBBState
from models.inference.builders import build_method
from models.inference.method import State, WindowMethod
from models.inference.sharpening import SharpenedState
from models.language.corpus import Corpus
from models.language.evaluation import evaluate, score
from models.language.model import BayesianLanguageModel
from models.language.trainer import LanguageFitState, WindowTrainer
from models.language.vocabulary import Vocabulary
from models.posteriors.pruning import prune
from models.posteriors.variant import Variant
from models.randomness import derive_seed, generator
from models.training.card import describe_training
from models.training.preparation import notes_on_objective
from models.training.row_profile import ColumnSummary, RowProfile
from models.training.stages import Stages
from models.training.trainer import EpochResult, required

_HELD_OUT_STREAMS = 10


def train_language_model(
    columns: Columns, config: ModelConfig, stages: Stages, device: str
) -> BayesianLanguageModel:
    """Trains a model and its pruned variants on a text, and scores each on its last lines.

    The vocabulary is that of the lines that are learned from.

    Raises:
        InvalidData: if the lines hold too little to learn from.
        Diverged: if a number went non-finite; nothing is saved then.
        Stopped: between two windows, once the stages' `should_stop` says so.
    """
    values = columns[config.target]
    lines = [str(line) for line in values[present(values)]]
    training = config.training
    kept, last = split_rows(
        training.split, training.validation_fraction, training.seed, len(lines), None
    )
    # The first half chooses the rate and the epoch. A single line has to do both.
    first, second = (
        (last[: len(last) // 2], last[len(last) // 2 :]) if len(last) > 1 else (last,) * 2
    )
    learned, stopping, scores = ([lines[i] for i in index] for index in (kept, first, second))
    vocabulary = Vocabulary.fit(learned, _language(config))
    seed = derive_seed(training.seed, "prediction") % 2**31
    where = f"held out: the last {len(last)} of {len(lines)} lines"
    if len(last) > 1:
        where += f", of which the first {len(first)} chose the epoch and the others were scored"
    notes = (where, *notes_on_objective(config.method))
    model = BayesianLanguageModel(
        config=config,
        vocabulary=vocabulary,
        variants_by_prune={},
        default_seed=seed,
        notes=notes,
    )
    model = _Pass(model, learned, stopping, scores, stages, device).run()
    text = ColumnSummary(
        name=config.target, role="target", type="text", missing=len(values) - len(lines)
    )
    rows = RowProfile(
        learned=len(learned),
        stopping=len(stopping) if len(last) > 1 else 0,  # a single line is scored as well
        calibration=0,
        held_out=len(scores),
        columns=(text,),
    )
    return replace(model, card=describe_training(rows, model.history, model.variants_by_prune))


def _language(config: ModelConfig) -> LanguageConfig:
    if config.language is None:
        raise ValueError("language is not set; call models.training.recipe.resolve first")
    return config.language


@dataclass(frozen=True)
class _Pass:
    """One run of the recipe: a fit, then one stage per pruned variant.

    `stopping` are the lines that choose the rate and the epoch.
    """

    model: BayesianLanguageModel
    learned: Sequence[str]
    stopping: Sequence[str]
    scores: Sequence[str]
    stages: Stages
    device: str

    def run(self) -> BayesianLanguageModel:
        corpus = self._learned_corpus()
        method = self._method(corpus)
        state, history = self._fit(method, corpus)
        variants = {0.0: Variant(0.0, _plain(state))}
        if isinstance(self.config.method, EnsembleConfig):
            metrics = {"members": self.config.method.members}
            variants[0.0] = replace(variants[0.0], metrics=metrics)
        if isinstance(method, BayesByBackprop):
            for fraction in self.config.pruning or ():
                state = self._prune(method, corpus, state, fraction)
                variants[fraction] = Variant(fraction, _plain(state))
        records = tuple(asdict(result) for result in history)
        model = replace(self.model, variants_by_prune=variants, history=records)
        return self._with_scores(model)

    @property
    def config(self) -> ModelConfig:
        return self.model.config

    @property
    def _steps(self) -> int:
        return required(_language(self.config).steps, "language.steps")

    def _learned_corpus(self) -> Corpus:
        streams = required(self.config.training.batch_size, "batch_size")
        corpus = self.model.corpus(self.learned, streams)
        return corpus.whole_windows(self._steps).to(self.device)

    def _held_out_corpus(self, lines: Sequence[str]) -> Corpus:
        return self.model.corpus(lines, _HELD_OUT_STREAMS).to(self.device)

    def _method(self, corpus: Corpus) -> WindowMethod:
        model = self.model
        method = build_method(
            self.config.method, model.network, model.likelihood, corpus.num_targets
        )
        if not isinstance(method, WindowMethod):
            raise InvalidData(
                f"method {self.config.method.kind!r} cannot be fitted to text", "/method/kind"
            )
        return method

    def _fit(self, method: WindowMethod, corpus: Corpus) -> tuple[Any, list[EpochResult]]:
        state = method.init(generator(self.config.training.seed, "init")).to(self.device)
        trainer = self._trainer(method, corpus, self.config.training, state)
        return self.stages.run("fit", trainer), trainer.state.history

    def _prune(
        self, method: BayesByBackprop, corpus: Corpus, parent: BBBState, fraction: float
    ) -> BBBState:
        """Prunes the parent further and lets the remaining weights adapt, mask fixed.

        Rates of sharpening go on as they were learned, and the KL keeps its full weight.
        """
        state = replace(parent, posterior=prune(parent.posterior, fraction)).detach()
        training = self._fine_tuning(fraction)
        if training.epochs == 0:
            return state
        kl = replace(method.config.kl, warmup_epochs=0)
        tuning = replace(method, config=replace(method.config, kl=kl))
        trainer = self._trainer(tuning, corpus, training, state)
        tuned: BBBState = self.stages.run(f"prune-{fraction:g}", trainer)
        return tuned

    def _fine_tuning(self, fraction: float) -> TrainingConfig:
        """The fit's settings at `fraction` of its rate, which falls to 0 along a cosine."""
        training = self.config.training
        return replace(
            training,
            epochs=training.fine_tune_epochs,
            patience=None,
            schedule="cosine",
            learning_rate=fraction * required(training.learning_rate, "learning_rate"),
            seed=derive_seed(training.seed, "variant", f"{fraction:g}") % 2**31,
        )

    def _trainer(
        self, method: WindowMethod, corpus: Corpus, training: TrainingConfig, state: State
    ) -> WindowTrainer:
        held_out = self._held_out_corpus(self.stopping)
        return WindowTrainer(
            self.model.network,
            method,
            corpus,
            training,
            self._steps,
            lambda state: score(self.model.network, _plain(state), held_out),
            LanguageFitState(state, state.detach()),
        )

    def _with_scores(self, model: BayesianLanguageModel) -> BayesianLanguageModel:
        """Metrics of every variant on lines of no other use."""
        held_out = self._held_out_corpus(self.scores)
        scored = {}
        for fraction, variant in model.variants_by_prune.items():
            metrics = evaluate(model.network, variant.state, held_out, model.default_seed)
            whole = {"rows": len(self.scores), **metrics, **variant.metrics}
            scored[fraction] = replace(variant, metrics=whole)
        return replace(model, variants_by_prune=scored)


def _plain(state: Any) -> Any:
    """A state as it predicts and is stored."""
    return state.unsharpened() if isinstance(state, SharpenedState) else state
