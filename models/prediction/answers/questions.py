"""All questions that predictive mixtures answer, in the order of a response."""

from collections.abc import Mapping
from functools import cache
from typing import TypeVar

import numpy as np
from torch import Tensor

from models.evaluation.calibration import Calibration
from models.prediction.answers import (
    anomalies,
    class_sets,
    decisions,
    density,
    exceeds,
    quantiles,
    totals,
)
from models.prediction.answers.answer import (
    Answer,
    Arrays,
    Classes,
    ErrorOf,
    Question,
    TensorsByName,
)
from models.prediction.options import BatchOptions, ResolvedOptions
from models.prediction.predictive import Mixture

V = TypeVar("V", Tensor, np.ndarray)

QUESTIONS: tuple[Question, ...] = (
    exceeds.QUESTION,
    quantiles.QUESTION,
    density.QUESTION,
    decisions.QUESTION,
    class_sets.QUESTION,
    totals.QUESTION,
    anomalies.QUESTION,
)


def of_mixture(
    mixture: Mixture, options: BatchOptions, calibration: Calibration | None
) -> dict[str, Tensor]:
    """The arrays of all questions that are asked, for the summary of a prediction."""
    return {
        question.key(name): values
        for question in QUESTIONS
        if question.is_asked(options)
        for name, values in question.of_mixture(mixture, options, calibration).items()
    }


def are_asked(options: BatchOptions) -> bool:
    """Whether any question is asked."""
    return any(question.is_asked(options) for question in QUESTIONS)


def errors_of(
    mixture: Mixture, raw: Mixture, summary: TensorsByName, options: BatchOptions, error: ErrorOf
) -> dict[str, Tensor]:
    """The standard errors of all questions that are asked, by name.

    Args:
        mixture, raw: after and before calibration.
        error: the standard error of a mean over samples, given what each of them adds.
    """
    return {
        name: values
        for question in QUESTIONS
        if question.errors is not None and question.is_asked(options)
        for name, values in question.errors(
            mixture, raw, _of_question(question, summary), options, error
        ).items()
    }


def answers(summary: Arrays, options: ResolvedOptions, classes: Classes) -> dict[str, Answer]:
    """The answers by their names in JSON, from the summary of a prediction."""
    return {
        question.member or question.name: question.answer(
            _of_question(question, summary), options, classes
        )
        for question in QUESTIONS
        if question.is_asked(options)
    }


def check(options: BatchOptions, classes: Classes) -> None:
    """Raise `InvalidInput` for options that a model of these classes cannot answer."""
    for question in QUESTIONS:
        if question.check is not None and question.is_asked(options):
            question.check(options, classes)


def _of_question(question: Question, summary: Mapping[str, V]) -> dict[str, V]:
    prefix = question.key("")
    return {k.removeprefix(prefix): v for k, v in summary.items() if k.startswith(prefix)}


@cache
def not_answered(task: str) -> Mapping[str, str]:
    """Options that models of a task do not have, each with its error message."""
    return {one.name: _refusal(one, task) for one in QUESTIONS if task not in one.tasks}


def _refusal(question: Question, task: str) -> str:
    tasks = " and ".join(question.tasks).replace("_", " ")
    message = f"is for models of {tasks}, and this one is for {task.replace('_', ' ')}"
    return f"{message}; {question.instead[task]}" if task in question.instead else message
