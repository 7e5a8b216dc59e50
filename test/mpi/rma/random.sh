#!/bin/sh
# random.sh SECONDS RANKS WAY... - runs random programs of one-sided operations (random.c) with a new seed each time, with each of
# RANKS processes ("2,3,4") over each of the ways in turn, until it has run for SECONDS, once at least. `make check-windows` runs it; by hand it
# needs top_builddir and bin/mpiexec there. TERN_TEST_SEED says which seeds, TERN_TEST_PROGRAMS how many programs a run has. Exit
# code 1: a run failed; its output is shown.
#
# A way is one or several of these words with a + between them:
#     shm, tcp              TERN_TRANSPORTS
#     nocma                 private memory of the node is reached by messages
#     hosts                 two hosts that are made up, which share no memory
#     helper                a helper thread in each rank
#     threads               three threads in each rank
#     basic, threaded, copy TERN_RMA_PASSIVE: how far targets are served while they compute (threaded: helper)
: "${top_builddir:?run me by make check-windows}"
seconds=${1:?random.sh SECONDS RANKS WAY...} ranks=$(echo "${2:?}" | tr , ' ')
shift 2
seed=${TERN_TEST_SEED:-$(date +%s)000} failed=0 runs=0 checks=0
end=$(($(date +%s) + seconds))
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
printf '#!/bin/sh\ncd /\nexec sh -c "$2"\n' >"$dir/agent"
chmod +x "$dir/agent"
mpiexec=$(cd "$top_builddir" && pwd)/bin/mpiexec program=$(cd "$top_builddir" && pwd)/test/mpi/rma/random

# One run of $n ranks over $way, by $seed.
run()
{
    set --
    for word in $(echo "$way" | tr + ' '); do
        case $word in
        shm|tcp) set -- "$@" -genv TERN_TRANSPORTS "self,$word" ;;
        nocma) set -- "$@" -genv TERN_CMA off ;;
        hosts) set -- "$@" -launcher-exec "$dir/agent" -hosts a,b -ppn $(((n + 1) / 2)) ;;
        helper) set -- "$@" -genv TERN_PROGRESS helper ;;
        threads) set -- "$@" -genv TERN_TEST_THREADS 3 ;;
        threaded) set -- "$@" -genv TERN_RMA_PASSIVE helper ;;
        basic|copy) set -- "$@" -genv TERN_RMA_PASSIVE "$word" ;;
        *) echo "there is no way $word"; exit 2 ;;
        esac
    done
    "$mpiexec" --timeout "${TERN_TEST_LIMIT:-300}" "$@" -genv TERN_TEST_SEED "$seed" -n "$n" "$program" "${TERN_TEST_PROGRAMS:-30}" \
        >"$dir/out" 2>&1 </dev/null
}

while [ "$(date +%s)" -lt "$end" ] || [ $runs = 0 ]; do
    for way; do
        for n in $ranks; do
            [ "$(date +%s)" -lt "$end" ] || [ $runs = 0 ] || break 2
            runs=$((runs + 1)) seed=$((seed + 1000))
            rc=0
            run || rc=$?
            if [ $rc = 0 ]; then
                checks=$((checks + $(sed -n 's/^checks: \([0-9]*\).*/\1/p' "$dir/out")))
                continue
            fi
            echo "FAILED, exit code $rc: $n ranks over $way, seed $seed"
            failed=$((failed + 1))
            head -n 60 "$dir/out" | sed 's/^/   /'
        done
    done
done
echo "$runs runs, $checks checks, $failed failed"
[ "$runs" -gt 0 ] && [ $failed = 0 ]
