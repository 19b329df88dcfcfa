"""All questions that predictive mixtures answer, in the order of a response."""

from torch import Tensor

from models.evaluation.calibration import Calibration
from models.prediction.answers import class_sets, exceeds
from models.prediction.answers.answer import Answer, Arrays, Classes, Question
from models.prediction.options import BatchOptions, ResolvedOptions
from models.prediction.predictive import Mixture

QUESTIONS: tuple[Question, ...] = (exceeds.QUESTION, class_sets.QUESTION)


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


def answers(summary: Arrays, options: ResolvedOptions, classes: Classes) -> dict[str, Answer]:
    """The answers by their names in JSON, from the summary of a prediction."""
    asked = [question for question in QUESTIONS if question.is_asked(options)]
    return {
        one.member or one.name: one.answer(_of_question(one, summary), options, classes)
        for one in asked
    }


def _of_question(question: Question, summary: Arrays) -> Arrays:
    prefix = question.key("")
    return {k.removeprefix(prefix): v for k, v in summary.items() if k.startswith(prefix)}


def not_answered(task: str) -> dict[str, str]:
    """Options that models of a task do not have, each with its error message."""
    return {
        one.name: f"a model for {task.replace('_', ' ')} does not answer it: "
        f"{' and '.join(one.tasks)} do"
        for one in QUESTIONS
        if task not in one.tasks
    }
