#!/usr/bin/env bash
# Replace a running stack by this release, without a gap: `make release`, or
#   deploy/release.sh [--no-build]        --no-build: the images are there already
# First the migration: if it fails, nothing has changed yet. Then, for each replica of the API: start a new one, wait
# until it is healthy, let the proxy use it and the old one no more, wait for the old one's last answers, stop it. At
# last the workers. It may be run again after a failure. COMPOSE_PROJECT_NAME and COMPOSE_FILE choose another stack.
set -euo pipefail
cd "$(dirname "$0")/.."
START_SECONDS=${START_SECONDS:-300}     # for a new replica to be healthy
DRAIN_SECONDS=${DRAIN_SECONDS:-30}      # for the last answers of an old one; then it is stopped all the same
SLOTS=32                                # places for replicas in docker/proxy/haproxy.cfg

say() { printf 'release: %s\n' "$*"; }
proxy() { docker compose exec -T proxy socat -t 5 - UNIX-CONNECT:/tmp/proxy.sock <<<"$1"; }
replicas() { docker compose ps --quiet api; }

wait_for() {            # SECONDS WHAT COMMAND…
    local end=$((SECONDS + $1)) what=$2
    shift 2
    until "$@"; do
        ((SECONDS < end)) || { say "waited in vain for $what" >&2; return 1; }
        sleep 0.5
    done
}

slot_of() {             # CONTAINER: the proxy's place with one of its addresses; fails until there is one
    local addresses name address
    addresses=$(docker inspect --format '{{range .NetworkSettings.Networks}} {{.IPAddress}} {{end}}' "$1")
    while read -r name address; do
        [[ $addresses != *" $address "* ]] || { echo "$name"; return; }
    done < <(proxy "show servers state api" | awk '$2 == "api" {print $4, $5}')
    return 1
}
set_state() { proxy "set server api/$1 state $2" >/dev/null; }     # SLOT ready|drain|maint
set_all() {             # ready|maint SLOT…: those that are not named
    local state=$1 slot commands=
    shift
    for ((slot = 1; slot <= SLOTS; slot++)); do
        [[ " $* " == *" api$slot "* ]] || commands+="set server api/api$slot state $state; "
    done
    proxy "$commands" >/dev/null
}
has_answered() {        # SLOT: no request is in progress there
    [[ $(proxy "show stat" | awk -F, -v slot="$1" '$1 == "api" && $2 == slot {print $5}') == 0 ]]
}

start_replica() {       # prints its id, once the proxy sends it requests
    local before new slot
    before=$(replicas)
    docker compose up --detach --no-deps --no-recreate --scale "api=$(($(wc -l <<<"$before") + 1))" \
        --wait --wait-timeout "$START_SECONDS" api >&2
    new=$(replicas | grep -vxF "$before")
    wait_for 30 "the proxy to find $new" slot_of "$new" >/dev/null
    set_state "$(slot_of "$new")" ready
    echo "$new"
}
end_replica() {         # CONTAINER
    local slot
    if slot=$(slot_of "$1"); then
        set_state "$slot" drain
        wait_for "$DRAIN_SECONDS" "the last answers of ${1:0:12}" has_answered "$slot" || true
    fi
    docker stop "$1" >/dev/null
    docker rm --volumes "$1" >/dev/null
    [[ -z $slot ]] || set_state "$slot" maint   # until the next replica there is healthy
}

main() {
    local old container used=()
    [[ ${1:-} == --no-build ]] || docker compose build
    mapfile -t old < <(replicas)
    if ((${#old[@]} == 0)); then
        exec docker compose up --detach --wait  # nothing ran
    else
        docker compose run --rm --no-deps migrate
        for container in "${old[@]}"; do used+=("$(slot_of "$container")"); done
        trap 'set_all ready' EXIT
        set_all maint "${used[@]}"              # so that nothing is sent to a replica before it is healthy
        for container in "${old[@]}"; do
            say "replacing ${container:0:12}: ${#old[@]} replicas in all"
            start_replica >/dev/null
            end_replica "$container"
        done
        set_all ready
        trap - EXIT
    fi
    # Alone: with all services, compose would replace the replicas and the proxy once more, since it counts
    # dependencies, which are left out here, among what has changed.
    docker compose up --detach --wait --no-deps worker
    say "done after $SECONDS s"
}

main "$@"
