"""`credence webhooks`: receivers that are told of events."""

from typing import Annotated, cast

import typer

from credence.commands.connection import connect
from credence.commands.lists import shown
from credence.commands.options import AsJson, Limit, Url, Yes
from credence.rendering import note, print_fields, print_json, print_table
from credence.types import Delivery, WebhookEvent

app = typer.Typer(no_args_is_help=True, help="Webhooks: receivers that are told of events.")

Id = Annotated[str, typer.Argument(metavar="WEBHOOK", help="Id of the webhook.")]


@app.command("list")
def list_webhooks(limit: Limit = None, as_json: AsJson = False, url: Url = None) -> None:
    """List the webhooks, and why one is disabled.

    Example: `credence webhooks list`
    """
    with connect(url) as client:
        found = shown(client.webhooks(), limit, as_json=as_json)
    if as_json:
        print_json(found)
        return
    if not found:
        note("no webhooks yet: `credence webhooks add URL --event job.succeeded` makes one")
    headers = ["webhook", "url", "events", "failing since", "disabled"]
    rows = (
        [w["id"], w["url"], ", ".join(w["events"]), w["failing_since"], w["disabled_reason"]]
        for w in found
    )
    print_table(headers, rows)


@app.command()
def add(
    receiver: Annotated[str, typer.Argument(metavar="URL", help="The receiver's URL.")],
    event: Annotated[list[str], typer.Option("--event", help="What to tell of; once per event.")],
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Tell a receiver of events; prints the secret that verifies them, once.

    Example: `credence webhooks add https://hooks.example.org/credence --event job.failed`
    """
    with connect(url) as client:
        made = client.add_webhook(receiver, cast(list[WebhookEvent], event))
    if as_json:
        print_json(made)
        return
    print_fields({"webhook": made["id"], "url": made["url"], "secret": made["secret"]})
    note("keep the secret now: it is not shown again")


@app.command()
def remove(webhook: Id, yes: Yes = False, url: Url = None) -> None:
    """Delete a webhook with its deliveries.

    Example: `credence webhooks remove hook_01`
    """
    if not yes:
        typer.confirm(f"Delete webhook {webhook} with its deliveries?", abort=True)
    with connect(url) as client:
        client.delete_webhook(webhook)
    typer.echo(f"deleted webhook {webhook}")


@app.command()
def enable(webhook: Id, as_json: AsJson = False, url: Url = None) -> None:
    """Enable a webhook that was disabled because its receiver failed for days.

    Example: `credence webhooks enable hook_01`
    """
    with connect(url) as client:
        now = client.enable_webhook(webhook)
    print_json(now) if as_json else typer.echo(f"enabled webhook {webhook}")


@app.command()
def deliveries(webhook: Id, limit: Limit = None, as_json: AsJson = False, url: Url = None) -> None:
    """Show what a webhook was told in the last 30 days, and how it went.

    Example: `credence webhooks deliveries hook_01`
    """
    with connect(url) as client:
        found = shown(client.deliveries(webhook), limit, as_json=as_json)
    if as_json:
        print_json(found)
        return
    headers = ["delivery", "event", "about", "status", "tries", "last answer", "created"]
    print_table(headers, map(_line, found))


@app.command()
def replay(
    webhook: Id,
    delivery: Annotated[str, typer.Argument(help="Id of the delivery.")],
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Send a delivery that has ended again, with the same id and body.

    Example: `credence webhooks replay hook_01 msg_01`
    """
    with connect(url) as client:
        again = client.replay(webhook, delivery)
    print_json(again) if as_json else typer.echo(f"{delivery} will be sent again")


def _line(one: Delivery) -> list[object]:
    last = one["tries"][-1] if one["tries"] else None
    answer = last and (last["response_status"] or last["error"])
    return [
        one["id"], one["event"], one["subject"], one["status"], one["attempts"], answer,
        one["created_at"],
    ]  # fmt: skip
