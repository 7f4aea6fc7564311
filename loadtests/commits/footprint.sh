#!/bin/sh
# footprint.sh PLAN RAW ROUNDS ASK: measures the memory of the servers of a plan, one at a time.
#
# A line of PLAN: name, port (0: none), folder, PYTHONPATH, command; tabs between them. ASK is a command that
# ends with 0 once the server at the port that follows has answered. No interpreter runs while memory is read:
# it would share pages with the server, and halve what these count.
set -eu
plan=$1 raw=$2 rounds=$3 ask=$4
tab=$(printf '\t')

round=1
while [ "$round" -le "$rounds" ]; do
    while IFS=$tab read -r name port folder path command; do
        echo "round $round of $rounds: $name" >&2
        (cd "$folder" && PYTHONPATH=$path exec setsid sh -c "exec $command") </dev/null >"$raw.said" 2>&1 &
        leader=$!
        if [ "$port" = 0 ] || $ask "$port"; then
            sleep 2
            for process in $(ps -o pid= -s "$leader"); do
                printf '# %s\t%s\n' "$round" "$name"
                cat "/proc/$process/smaps_rollup"
            done >>"$raw"
        else
            echo "$name does not answer: $(tail -n 2 "$raw.said")" >&2
        fi
        kill -TERM "-$leader" 2>/dev/null || true
        for _ in 1 2 3 4 5 6 7 8 9 10; do
            [ -n "$(ps -o pid= -s "$leader")" ] || break
            sleep 0.3
        done
        kill -KILL "-$leader" 2>/dev/null || true
        wait "$leader" 2>/dev/null || true
    done <"$plan"
    round=$((round + 1))
done
rm -f "$raw.said"
