"""The tool that says how far to trust a model."""

from typing import Any

from credence.agents.brief import first, present, scores
from credence.agents.tool import ModelName, Tool, VersionReference, page
from credence.client import AsyncClient
from credence.types import Json

MAX_FEATURES, MAX_LIMITS, MAX_LEVELS, TOP = 40, 12, 10, 5
SHARES = 0.9, 0.75, 0.5  # of the rows that are still answered


class ModelCard(Tool):
    """Show how far to trust a version: inputs, scores, comparison with simple methods, limits.

    The scores are of rows that training did not see. `abstain_above` suggests values for predict:
    with each, so large a share of the rows is answered, with this error.
    """

    model: ModelName
    version: VersionReference = None

    async def run(self, client: AsyncClient) -> Json:
        """The card in short."""
        version: Any = await client.version(self.model, self.version)
        card: Any = await client.card(self.model, version["version"])
        path = f"/models/{self.model}/versions/{version['version']}"
        features, more = first(_features(card), MAX_FEATURES, f"GET {path}")
        limits, more_limits = first(
            [*card["notes"], *card["limits"]], MAX_LIMITS, f"GET {path}/card"
        )
        return present(
            model=card["model"],
            version=card["version"],
            aliases=card["aliases"],
            task=card["task"],
            target=card["target"],
            classes=card.get("classes"),
            features=features,
            more_features=more,
            rows_learned_from=card["rows"]["learned"],
            scores=scores(version["metrics"]),
            simple_methods={one["kind"]: scores(one["metrics"]) for one in card["baselines"]},
            abstain_above=_thresholds(version["metrics"].get("risk_coverage")),
            most_important=[one["name"] for one in card["importance"]["features"][:TOP]],
            limits=limits,
            more_limits=more_limits,
            dataset=card["dataset"],
            page=page(client, path),
        )


def _features(card: Any) -> list[Json]:
    """The inputs, with the range or the levels that training saw."""
    seen = {column["name"]: column for column in card["rows"]["columns"]}
    found = []
    for feature in card["features"]:
        column = seen.get(feature["name"], {})
        levels = [level for level, _ in column.get("levels") or ()]
        found.append(
            present(
                name=feature["name"],
                type=feature["type"],
                min=column.get("min"),
                max=column.get("max"),
                levels=levels[:MAX_LEVELS],
            )
        )
    return found


def _thresholds(curve: Any) -> list[Json]:
    """For some shares of the rows: the threshold with which so many are answered, and the error."""
    found = []
    for share in SHARES:
        enough = [one for one in curve or () if one["coverage"] >= share]
        if enough:
            point = min(enough, key=lambda one: one["coverage"])
            found.append(
                {
                    "abstain_above": point["threshold"],
                    "share_answered": point["coverage"],
                    "error_of_these": point["risk"],
                }
            )
    return found
