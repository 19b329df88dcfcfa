#!/bin/sh
# Serve /data as S3, with a bucket per folder. The credentials file (in AWS's format) has the key.
set -eu
credentials=${STORE_CREDENTIALS_FILE:-/run/secrets/store/credentials}
value() { sed -n "s/^$1 *= *//p" "$credentials"; }
RCLONE_AUTH_KEY="\"$(value aws_access_key_id),$(value aws_secret_access_key)\""
export RCLONE_AUTH_KEY
mkdir -p "/data/${STORE_BUCKET:-credence}"
exec rclone serve s3 /data --addr :9000 --config /dev/null --cache-dir /tmp --log-level NOTICE \
    --vfs-cache-mode off --dir-cache-time 1s --poll-interval 0
