#!/bin/sh
# start.sh COMMAND…: run Alertmanager, telling the webhook whose address a secret file holds, if it holds one.
# The address is a secret (whoever has it can write to the channel), and Alertmanager 0.25 reads it from
# its configuration alone: a copy with the address in it is written where only this process reads.
set -eu
address=${ALERT_WEBHOOK_URL_FILE:-/run/secrets/alerts/webhook_url}
given=${ALERTMANAGER_CONFIG:-/etc/alertmanager/alertmanager.yml}
config=${TMPDIR:-/tmp}/alertmanager.yml
umask 077
if [ -s "$address" ]; then
    url=$(tr -d '[:space:]' <"$address" | sed 's/[&|\\]/\\&/g')
    sed -e 's|receiver: nobody|receiver: webhook|' -e "s|https://webhook.invalid/|$url|" "$given" >"$config"
else
    cp "$given" "$config"
fi
exec "$@" --config.file="$config"
