"""Models: versions, cards, aliases, sharing, and the audit log."""

from pathlib import Path

from credence.client.calls import Calls
from credence.client.operations import Listing, Operation, listing, method
from credence.client.requests import path
from credence.types import AuditLine, Card, ExpectedScores, Json, Model, Shared, Version


class ModelCalls(Calls):
    """Read, name, share, export, import and delete models and versions."""

    @listing
    def models(self) -> Listing[Model]:
        """All models by name, page after page."""
        return self.pages("/models")

    @method
    def versions(self, name: str) -> Operation[Json]:
        """One model with its versions, newest first, and its aliases."""
        return self.call("GET", path("models", name))

    @method
    def version(self, name: str, version: int | str | None = None) -> Operation[Version]:
        """One version, by number or alias; by default the newest."""
        if version is None:
            found = (yield from ModelCalls.versions(self, name))["versions"]
            version = max(int(each["version"]) for each in found)
        return (yield from self.call("GET", path("models", name, "versions", version)))

    @method
    def expected(
        self,
        name: str,
        dataset: str,
        *,
        version: int | str | None = None,
        prune: float = 0.0,
        level: float = 0.9,
        rows: int | None = None,
        seed: int = 0,
    ) -> Operation[ExpectedScores]:
        """The scores to expect of a version on a data set without labels, with intervals.

        Args:
            level: probability of the intervals.
            rows: of a longer data set so many rows are drawn at random with `seed`.
        """
        asked = {"dataset": dataset, "version": version, "prune": prune}
        more = {"level": level, "rows": rows, "seed": seed}
        return self.call("GET", path("models", name, "expected"), params=asked | more)

    @method
    def card(self, name: str, version: int | str) -> Operation[Card]:
        """The model card of a version: training, scores and known limits."""
        return self.call("GET", path("models", name, "versions", version, "card"))

    @method
    def card_page(self, name: str, version: int | str) -> Operation[str]:
        """The model card as one HTML file, which needs neither the service nor a network."""
        return self.page_as_file(path("models", name, "versions", version, "card"))

    @method
    def export_version(self, name: str, version: int | str, file: Path) -> Operation[None]:
        """Stream a version's archive to `file`, which appears only when it is complete."""
        archive = path("models", name, "versions", version, "archive")
        return self.call("GET", archive, save_as=Path(file), read=lambda _: None)

    @method
    def import_version(self, file: Path, name: str, alias: str | None = None) -> Operation[Version]:
        """Create a version from an archive, which may be from another installation."""
        return self.create(
            path("models", name, "versions"),
            params={"alias": alias},
            headers={"Content-Type": "application/x-tar"},
            body=Path(file),
        )

    @method
    def delete_model(self, name: str) -> Operation[None]:
        """Delete a model with all its versions."""
        return self.call("DELETE", path("models", name))

    @method
    def delete_version(self, name: str, version: int | str) -> Operation[None]:
        """Delete one version; its number is not used again."""
        return self.call("DELETE", path("models", name, "versions", version))

    @method
    def set_alias(self, name: str, alias: str, version: int) -> Operation[None]:
        """Set an alias to this version."""
        target, body = path("models", name, "aliases", alias), {"version": version}
        return self.call("PUT", target, json=body, read=lambda _: None)

    @method
    def delete_alias(self, name: str, alias: str) -> Operation[None]:
        """Remove an alias; the version it named stays."""
        return self.call("DELETE", path("models", name, "aliases", alias))

    @method
    def sharing(self, kind: Shared, identifier: str) -> Operation[list[str]]:
        """The names of the other owners who may see an object."""
        target = path(kind, identifier, "sharing")
        return self.call("GET", target, read=lambda answer: answer.json()["with"])

    @method
    def share(self, kind: Shared, identifier: str, readers: list[str]) -> Operation[list[str]]:
        """Set the other owners who may see an object; "*" is everybody."""
        target, body = path(kind, identifier, "sharing"), {"with": readers}
        return self.call("PUT", target, json=body, read=lambda answer: answer.json()["with"])

    @listing
    def audit(self, owner: str | None = None, object: str | None = None) -> Listing[AuditLine]:
        """The audit log, newest first; all of it, or that of one owner or object."""
        return self.pages("/audit", owner=owner, object=object)
