#!/bin/sh
# Write the secrets that are not there yet: random, or taken from the folder /given. Nothing is printed.
# Each lies in a volume of its own, which only the services that need it mount (read only).
set -eu
umask 022
random() { head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n'; }

given() {  # VOLUME/FILE: taken from /given, where its name has _ for /
    file=/given/$(echo "$1" | tr / _)
    [ ! -s "$file" ] || install -m 444 "$file" "/secrets/$1"
}
secret() {  # VOLUME/FILE CONTENT: given, or else made once
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
given alerts/webhook_url       # whom Alertmanager tells; nobody without it
