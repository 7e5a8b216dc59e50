#!/bin/sh
# hammer.sh RANKS THREADS SECONDS WAY... - runs the hammer with a new seed each minute, over each of the ways in turn (shm,
# tcp, or helper: a helper thread in each rank), until it has run for SECONDS. `make check-hammer` runs it; by hand it needs
# top_builddir and bin/mpiexec there. TERN_TEST_SEED says which seeds. Exit code 1: a run failed; its output is shown.
: "${top_builddir:?run me by make check-hammer}"
ranks=${1:?hammer.sh RANKS THREADS SECONDS WAY...} threads=$2 left=$3
shift 3
seed=${TERN_TEST_SEED:-$(date +%s)} failed=0 runs=0
turn=$(((left + $# - 1) / $#)) # each way has one, however short the whole is
[ "$turn" -le 60 ] || turn=60
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT
while [ "$left" -gt 0 ]; do
    for way; do
        [ "$left" -gt 0 ] || break
        time=$((left < turn ? left : turn))
        left=$((left - time)) runs=$((runs + 1)) seed=$((seed + 1))
        case $way in helper) set=TERN_PROGRESS=helper ;; *) set=TERN_TRANSPORTS=self,$way ;; esac
        line="$ranks ranks, $threads threads, $time s over $way, seed $seed"
        if env $set HAMMER_STUCK="${HAMMER_STUCK:-60}" "$top_builddir/bin/mpiexec" --timeout $((time + 200)) -n "$ranks" \
            "$top_builddir/test/mpi/threads/hammer" "$threads" "$time" "$seed" >"$out" 2>&1; then
            echo "ok: $line: $(awk '/ of the mean$/ { all += $4; if (!n++ || $6 < least) least = $6 }
                END { print all, "rounds, the slowest thread", least, "of the mean of its kind" }' "$out")"
        else
            rc=$?
            failed=$((failed + 1))
            echo "FAILED, exit code $rc: $line"
            sed 's/^/   /' "$out"
        fi
    done
done
echo "$runs runs, $failed failed"
[ $failed = 0 ]
