#!/bin/sh
# start.sh COMMAND…: run Alertmanager, with the webhook whose address is in a secret file, if there is one.
# The address is a secret, because it permits to write to the channel. Alertmanager 0.25 reads it only from its
# configuration, so this writes a copy with the address that only this user can read.
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
