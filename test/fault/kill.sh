# kill.sh - what the tests share that kill parts of a job at random moments, $rounds times each; read by them after
# test/launch/lib.sh. TERN_TEST_SEED sets the moments again.

seed=${TERN_TEST_SEED:-$$}
echo "# TERN_TEST_SEED=$seed, $rounds rounds"

random() # N: sets $random to 0 ... N - 1; the same ones for the same seed
{
    seed=$(((seed * 1103515245 + 12345) % 2147483648))
    random=$((seed / 65536 % $1))
}

random_nap() # MS: sleeps for less than so many milliseconds
{
    random "$1"
    sleep "$(printf '0.%03d' $random)"
}

# The processes of that name that were started by the launcher $job.
children() { "$top_builddir/test/launch/find_proc" child "$job" "$1"; }

# A process that is not dead yet; one that waits to be reaped by init is.
alive() { grep -q '^State:.[^ZX]' "/proc/$1/status" 2>/dev/null; }

# all_gone: neither marked processes nor files of the job within 2 s from `since`; else $left and $files say what is left.
all_gone()
{
    while :; do
        ms=$((($(date +%s%N) - run_start) / 1000000))
        left=$(marked) files=$(files_left)
        [ -z "$left$files" ] && return 0
        [ $ms -gt $limit ] && return 1
        sleep 0.02
    done
}

# rounds_of WORDS FUNCTION: the function does one round and fails with words in $why.
rounds_of()
{
    round=0
    while [ $round -lt "$rounds" ]; do
        round=$((round + 1))
        why=
        if ! $2; then
            { echo "round $round: $why"; echo "exit code $rc after $ms ms; processes left: $left; files left: $files"
              cat "$tmp/err"; } >"$tmp/why"
            kill -KILL $(marked) 2>/dev/null
            rm -rf "$TMPDIR"/*
            tap_result not-ok "$1" "$tmp/why"
            return
        fi
    done
    tap_result ok "$1"
}
