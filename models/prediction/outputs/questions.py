"""All questions that predictive mixtures answer, in the order of a response, and all outputs."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TypeVar, cast

from torch import Tensor

from models.evaluation.calibration import Calibration
from models.likelihoods.class_mixture import Mixture
from models.prediction.declared_outputs import (
    CLASS,
    LEVEL,
    ROW_OUTPUTS,
    SET_LEVEL,
    THRESHOLD,
    Coordinates,
    Declared,
    P,
    Part,
)
from models.prediction.monte_carlo_error import ErrorOf
from models.prediction.options import BatchOptions, ResolvedOptions
from models.prediction.outputs import (
    contributions,
    decisions,
    forecasts,
    numbers,
    reasons,
    sets,
)
from models.prediction.outputs.question import Classes, Question, TensorsByName
from models.prediction.summary import Summary

S = TypeVar("S", bound=Summary)

QUESTIONS: tuple[Question, ...] = (
    *numbers.QUESTIONS,
    decisions.QUESTION,
    sets.QUESTION,
    *forecasts.QUESTIONS,
)
PARTS = tuple(output for each in QUESTIONS for output in each.outputs if isinstance(output, Part))


def outputs() -> Declared:
    """The outputs of all predictions of rows, in the order of JSON and of tables."""
    return _outputs(QUESTIONS)


@cache
def _outputs(asked: Sequence[Question]) -> Declared:
    of_questions = (output for question in asked for output in question.outputs)
    return (*ROW_OUTPUTS, *of_questions, *contributions.OUTPUTS, reasons.REASONS)


def coordinates(options: BatchOptions, classes: Classes) -> Coordinates:
    """The coordinates that follow from the options and the model."""
    return {
        LEVEL: options.intervals,
        SET_LEVEL: () if options.set_level is None else (options.set_level,),
        THRESHOLD: options.exceeds,
        P: options.quantiles,
        CLASS: classes or (),
    }


def of_mixture(
    mixture: Mixture, options: BatchOptions, calibration: Calibration | None
) -> dict[str, Tensor]:
    """The values of all questions that are asked."""
    return {
        name: values
        for question in QUESTIONS
        if question.of_mixture is not None and question.is_asked(options)
        for name, values in question.of_mixture(mixture, options, calibration).items()
    }


def are_asked(options: BatchOptions) -> bool:
    """Whether any question is asked."""
    return any(question.is_asked(options) for question in QUESTIONS)


def errors_of(
    mixture: Mixture, raw: Mixture, values: TensorsByName, options: BatchOptions, error: ErrorOf
) -> dict[str, Tensor]:
    """The standard errors of all questions that are asked, by output.

    Args:
        mixture, raw: after and before calibration.
        error: the standard error of a mean over samples, given what each of them adds.
    """
    return {
        name: found
        for question in QUESTIONS
        if question.errors is not None and question.is_asked(options)
        for name, found in question.errors(mixture, raw, values, options, error).items()
    }


def finished(summary: S, options: ResolvedOptions) -> S:
    """The prediction with the outputs of all questions that are asked."""
    for question in QUESTIONS:
        if question.finish is not None and question.is_asked(options):
            summary = cast(S, question.finish(summary, options))
    return summary


def check(options: BatchOptions, classes: Classes) -> None:
    """Raise `InvalidInput` for options that a model of these classes cannot answer."""
    for question in QUESTIONS:
        if question.check is not None and question.is_asked(options):
            question.check(options, classes)


@cache
def not_answered(task: str) -> Mapping[str, str]:
    """Options that models of a task do not have, each with its error message."""
    return {
        question.option: _refusal(question, task)
        for question in QUESTIONS
        if task not in question.tasks
    }


def _refusal(question: Question, task: str) -> str:
    tasks = " and ".join(question.tasks).replace("_", " ")
    message = f"is for models of {tasks}, and this one is for {task.replace('_', ' ')}"
    return f"{message}; {question.instead[task]}" if task in question.instead else message
