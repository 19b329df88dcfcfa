#!/bin/sh
# Write the secrets that are not there yet: random, or taken from the folder /given. Nothing is printed.
# Each lies in a volume of its own, which only the services that need it mount (read only).
set -eu
umask 022
random() { head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n'; }

secret() {  # VOLUME/FILE CONTENT: a file in /given (named with _ for /) goes before the content
    path=/secrets/$1 given=/given/$(echo "$1" | tr / _)
    if [ -s "$given" ]; then cp "$given" "$path"
    elif [ ! -s "$path" ]; then printf '%s' "$2" > "$path.new" && mv "$path.new" "$path"; fi
    chmod 444 "$path"
}

secret database/password "$(random)"
secret broker/password "$(random)"
secret store/credentials "[default]
aws_access_key_id = credence
aws_secret_access_key = $(random)
"
secret admin/key "cred_$(random)"
secret grafana/password "$(random)"
