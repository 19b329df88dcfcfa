"""Terms of the glossary (`docs/glossary.md`), for the page *Help* and for the search."""

from collections.abc import Mapping, Sequence

TERMS: Mapping[str, str] = {
    "Aleatoric uncertainty": (
        "The noise in the data. Equal rows have different outcomes. More rows do not reduce"
        " it; better features may. For a number it is a variance, for a class an entropy."
    ),
    "Epistemic uncertainty": (
        "What the model does not know. Few rows, many functions that fit them. More rows reduce it."
    ),
    "Total uncertainty": "The sum of both: the variance, or the entropy, of the next value.",
    "Deviation": (
        "The standard deviation: the root of a variance, in the target's unit. Tables for "
        "people show deviations; JSON and CSV have variances."
    ),
    "Predictive entropy": (
        "Total uncertainty of a class, in nats: 0 is certain, 0.69 is a coin toss. Expected"
        " entropy is its aleatoric part, mutual information its epistemic part."
    ),
    "Interval": (
        "A lower and an upper bound for the next value. Its level, such as 90 %, is the "
        "share of new values that should be inside."
    ),
    "Credible interval": "The interval that the model's own distribution gives.",
    "Conformal interval": (
        "The credible interval, made wider or narrower so that it contains the right share "
        "of calibration rows. At the level 90 % it contains on average 90 % of new rows "
        "that are like those."
    ),
    "Adaptive interval": "A conformal interval whose level follows the true values that you send.",
    "Set of classes": (
        "The most probable classes, as many as contain the true one with the level's probability."
    ),
    "Quantile": (
        "The value that the target is below with a given probability. The quantile at 0.5 "
        "is the median."
    ),
    "Density": (
        "A curve that is high where the next value probably is. The area under it between "
        "two values is the probability of a value between them."
    ),
    "Coverage": (
        "The share of true values that are inside their intervals, or of true classes that "
        "are in their sets."
    ),
    "Calibrated": (
        "The stated probabilities are the observed frequencies: of the rows with "
        "probability 0.1, one in ten has the class."
    ),
    "Out of distribution": (
        "A row unlike those of training. Its prediction is a guess. ood_score says how "
        "unlike, reasons say why."
    ),
    "Abstain": (
        "The answer is marked as too uncertain to use (abstained): a person should decide. "
        "The row keeps its numbers and label. In costs, abstain is the cost of asking a "
        "person, and in the decision whether to ask."
    ),
    "Model": "A name, with one version or more.",
    "Version": "What one training made. It never changes.",
    "Alias": "A name that moves between versions, such as champion.",
    "Variant": "A version with a share of its weights removed (pruned).",
    "Model card": "What is known of a version: data, scores, limits.",
    "Posterior": (
        "The distribution of the weights after training. A sample is one draw of all "
        "weights from it."
    ),
    "Monte-Carlo error": (
        "The standard error of an answer that comes from a finite number of samples."
    ),
    "Method": (
        "How the posterior is learned. The default is bbb (Bayes by Backprop): a Gaussian "
        "for each weight. Others are map (one value for each weight), ensemble (several "
        "networks), mc_dropout (units left out at random), swag (a Gaussian around the last"
        " steps of the training), laplace (a Gaussian around the best weights), sgld "
        "(Langevin dynamics: a random walk through likely weights). All of them"
    ),
    "Likelihood": "The distribution of the target for given weights, such as Gaussian or count.",
    "ELBO": (
        "What Bayes by Backprop maximises: how well the weights explain the rows, minus the KL."
    ),
    "KL": (
        "How far the posterior is from the prior, which is what is assumed of the weights "
        "before there are rows. kl.weight is its weight in the objective; the weight 1 "
        "gives the ELBO."
    ),
    "Recipe": "The recommended settings, which are chosen from your rows.",
    "Race": (
        "How the recipe chooses for a table: it trains several candidates, compares them on"
        " rows that they had not learned from, and keeps the best."
    ),
    "Epoch": "One pass of a training through all its rows.",
    "Promote": "To move an alias, usually champion, to a newer version.",
    "Data set": "A stored table (or texts), which never changes. A fix makes a new one.",
    "Row, column, feature, target": (
        "A case; a named value of every case; a column that the model reads; the column to predict."
    ),
    "Level of a category": "One of the different texts of a column, such as Mon.",
    "Covariate": "A column of a series beside the time and the target, such as a price.",
    "Finding": "Something about a file or a column that you should know. Most have a fix.",
    "Held-out rows": (
        "Rows that no weight was fitted to. Scores are measured on those that were used for"
        " nothing else (scored rows)."
    ),
    "Calibration rows": (
        "Rows that correct the intervals and probabilities. Each is predicted by networks "
        "that have not learned from it: the rows are held out, or, in the recommended "
        "recipe, learned from by other networks of the version only."
    ),
    "Scored rows": (
        "Held-out rows that are used for nothing else than the scores. Where a page says "
        "that a score is measured on held-out rows, it is measured on these."
    ),
    "Label, true value": "What the target turned out to be.",
    "Feedback": "True values that you send for predictions.",
    "Drift": "Rows, or their relation to the target, are no longer those of training.",
    "Log likelihood": (
        "How probable the model found the true values, in nats per row. It sees both error "
        "and calibration. Higher is better."
    ),
    "RMSE, MAE": "Typical errors in the target's unit. Lower is better.",
    "CRPS": (
        "The error of the whole distribution, in the target's unit. For a single number it "
        "is the absolute error. Lower is better."
    ),
    "ECE": (
        "The mean distance between stated probability and observed frequency. Lower is better."
    ),
    "Baseline": (
        "A simple method on the same rows: a constant, a linear model, boosted trees; for "
        "series classical forecasts."
    ),
    "Operator": "The person who runs the service and sets its settings.",
    "Owner": (
        "The person or team that a key acts for. Data sets, jobs and models belong to the "
        "owner whose key made them. Others do not see them until they are shared."
    ),
    "Scope": "What a key may do: predict, train or admin.",
}


def anchor(name: str) -> str:
    """The id of a term on the page."""
    return name.lower().replace(",", "").replace(" ", "-")


def find_terms(text: str, most: int) -> Sequence[str]:
    """Names of the terms that contain all words of `text`, the shortest first."""
    words = text.lower().split()
    found = [name for name in TERMS if words and all(word in name.lower() for word in words)]
    return sorted(found, key=len)[:most]


def terms_about(text: str, most: int) -> Sequence[str]:
    """Names of the terms whose explanation contains all words of `text`."""
    words = text.lower().split()
    return [n for n, told in TERMS.items() if words and all(w in told.lower() for w in words)][
        :most
    ]
