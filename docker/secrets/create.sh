#!/bin/sh
# Create the missing secrets: random, or copied from the folder /given. Nothing is printed.
# Each is in its own volume. Only services that need a secret mount its volume, read-only.
set -eu
umask 022
random() { head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n'; }

given() {  # VOLUME/FILE: copied from /given/VOLUME_FILE
    file=/given/$(echo "$1" | tr / _)
    [ ! -s "$file" ] || install -m 444 "$file" "/secrets/$1"
}
secret() {  # VOLUME/FILE CONTENT: copied from /given, or CONTENT if missing
    given "$1"
    [ -s "/secrets/$1" ] || { printf '%s' "$2" > "/secrets/$1.new" && mv "/secrets/$1.new" "/secrets/$1"; }
}

secret database/password "$(random)"
secret broker/password "$(random)"
secret store/credentials "[default]
aws_access_key_id = credence
aws_secret_access_key = $(random)
"
secret admin/key "cred_$(random)"
secret grafana/password "$(random)"
given alerts/webhook_url       # Alertmanager's webhook; optional
