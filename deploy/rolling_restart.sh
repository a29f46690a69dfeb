#!/bin/sh
# Restarts web processes one after the other, so that a proxy before them always has one to ask:
#   deploy/rolling_restart.sh ace-web@8000 ace-web@8001
# What stands after the @ is the port on this host. RESTART is the command, `systemctl restart`.
set -eu
RESTART=${RESTART:-systemctl restart}
# nginx leaves a server out for its fail_timeout (5 s) after it refused a connection.
SETTLE_SECONDS=${SETTLE_SECONDS:-8}
READY_SECONDS=${READY_SECONDS:-60}

for unit in "$@"; do
    ready=http://127.0.0.1:${unit##*@}/readyz
    $RESTART "$unit"
    waited=0
    until curl --fail --silent --output /dev/null --max-time 5 "$ready"; do
        waited=$((waited + 1))
        if [ "$waited" -ge "$READY_SECONDS" ]; then
            echo "$unit is not ready after $READY_SECONDS s: $ready. The others were left as they are." >&2
            exit 1
        fi
        sleep 1
    done
    echo "$unit is ready"
    sleep "$SETTLE_SECONDS"
done
