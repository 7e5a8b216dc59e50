# lib.sh - what the tests of the launcher share: read by them after test/tap.sh.
#
# All processes that a test starts carry a mark in their environment, and make their files in $TMPDIR, so that leftovers
# are found and nothing of other tests is taken for one.

command -v mpiexec >"$tmp/out" || skip_all "no mpiexec was built"
actor=$top_builddir/test/launch/actor
export TERN_TEST_MARK="launch-$$"
export TMPDIR="$tmp/files"
mkdir "$TMPDIR"

# The pids of processes with our mark.
marked() { "$top_builddir/test/launch/find_proc" env "TERN_TEST_MARK_RUN=$TERN_TEST_MARK"; }

# run COMMAND...: within 60 s (with sanitizers more), output in $tmp/out and $tmp/err, exit code in $rc, milliseconds in $ms.
run()
{
    run_start=$(date +%s%N)
    TERN_TEST_MARK_RUN=$TERN_TEST_MARK timeout -k 1 $((60 * slow)) "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
    rc=$?
    ms=$((($(date +%s%N) - run_start) / 1000000))
}

# "Within two seconds" on a machine where nothing else runs: $limit ms, with as much more as starting a job takes here now.
run mpiexec -n 4 true
limit=$((2000 + 20 * ms))

# expect WORDS SHELL-CONDITION: shows the last run's output when it does not hold.
expect()
{
    if eval "$2"; then
        tap_result ok "$1"
    else
        { echo "does not hold: $2"; echo "exit code $rc after $ms ms"; echo "--- output"; head -n 20 "$tmp/out"
          echo "--- errors"; head -n 20 "$tmp/err"; } >"$tmp/why"
        tap_result not-ok "$1" "$tmp/why"
    fi
}

in_out() { grep -Eq -e "$1" "$tmp/out"; }
in_err() { grep -Eq -e "$1" "$tmp/err"; }
messages() { grep -c '^mpiexec: ' "$tmp/err"; }
is() { [ "$(cat "$tmp/out")" = "$1" ]; }

# Files in $TMPDIR. A process that is killed while it starts leaves one of the thread sanitizer, which is none of ours.
files_left() { ls -A -I 'tsan.rodata.*' "$TMPDIR"; }

# nothing_left WORDS: no process with our mark within $limit ms, no file in $TMPDIR.
nothing_left()
{
    for i in $(seq $((limit / 50))); do
        left=$(marked)
        files=$(files_left)
        [ -z "$left$files" ] && break
        sleep 0.05
    done
    rc="processes: $(for p in $left; do tr '\0' ' ' <"/proc/$p/cmdline"; echo "($p);"; done) files: $files"
    expect "$1" '[ -z "$left$files" ]'
}

# background COMMAND...: starts it as a job of its own; its pid in $job. Signals that a shell sets to be ignored for such
# jobs work as usual.
background()
{
    TERN_TEST_MARK_RUN=$TERN_TEST_MARK env --default-signal=INT,QUIT timeout --foreground -k 1 60 \
        sh -c 'echo $$ >"$0"; exec "$@"' "$tmp/pid" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null &
    waiter=$!
    until [ -s "$tmp/pid" ]; do sleep 0.01; done
    job=$(cat "$tmp/pid")
    rm "$tmp/pid"
}

# until_out N PATTERN: waits (10 s at most) until N lines of the output match.
until_out()
{
    for i in $(seq 200); do
        [ "$(grep -Ec -e "$2" "$tmp/out")" -ge "$1" ] && return 0
        sleep 0.05
    done
    return 1
}

# finished: waits for the background job; $rc and $ms (since `since`) as of run.
since() { run_start=$(date +%s%N); }
finished()
{
    wait $waiter
    rc=$?
    ms=$((($(date +%s%N) - run_start) / 1000000))
}
