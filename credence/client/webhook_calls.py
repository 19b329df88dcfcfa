"""Webhooks: receivers that are told of events, and what they were told."""

from credence.client.calls import Calls
from credence.client.operations import Listing, Operation, listing, method
from credence.client.requests import path
from credence.types import Delivery, NewWebhook, Webhook, WebhookEvent


class WebhookCalls(Calls):
    """Make, list and delete webhooks; read their deliveries, and send one again."""

    @method
    def add_webhook(self, url: str, events: list[WebhookEvent]) -> Operation[NewWebhook]:
        """Tell a receiver of events; the result's `secret`, which verifies them, is shown once."""
        return self.create("/webhooks", json={"url": url, "events": events})

    @listing
    def webhooks(self) -> Listing[Webhook]:
        """Webhooks, newest first, page after page."""
        return self.pages("/webhooks")

    @method
    def webhook(self, webhook_id: str) -> Operation[Webhook]:
        """One webhook, and whether it is disabled."""
        return self.call("GET", path("webhooks", webhook_id))

    @method
    def enable_webhook(self, webhook_id: str) -> Operation[Webhook]:
        """Enable a webhook that was disabled because its receiver failed for days."""
        return self.call("POST", path("webhooks", webhook_id, "enable"))

    @method
    def delete_webhook(self, webhook_id: str) -> Operation[None]:
        """Delete a webhook with its deliveries."""
        return self.call("DELETE", path("webhooks", webhook_id))

    @listing
    def deliveries(self, webhook_id: str) -> Listing[Delivery]:
        """What a webhook was told in the last 30 days, newest first, page after page."""
        return self.pages(path("webhooks", webhook_id, "deliveries"))

    @method
    def replay(self, webhook_id: str, delivery_id: str) -> Operation[Delivery]:
        """Send a delivery that has ended again, with the same id and body."""
        target = path("webhooks", webhook_id, "deliveries", delivery_id, "replay")
        return self.call("POST", target)
