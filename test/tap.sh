# tap.sh - for tests that are shell scripts: read it with
#
#     . "${top_srcdir:?run me by make check}/test/tap.sh"
#
# and say check, check_fails or skip for each case and done_testing at the end. $tmp is a
# folder that is removed at the end. What a failing command printed is shown.
#
# By hand: make check TESTS=test/build/wrapper.test

# Time limits are multiplied by this, as in test/mpi/run.
slow=${TERN_TEST_SLOW:-1}
[ -z "$SANITIZER_FLAGS" ] || slow=${TERN_TEST_SLOW:-5}

tap_count=0
tap_failed=0
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' HUP INT TERM

tap_result() # ok|not-ok, words, [file with output]
{
    tap_count=$((tap_count + 1))
    if [ "$1" = ok ]; then
        echo "ok $tap_count - $2"
    else
        echo "not ok $tap_count - $2"
        tap_failed=$((tap_failed + 1))
        [ -z "$3" ] || sed 's/^/#   /' "$3" | tail -n 60
    fi
}

# check WORDS COMMAND...: the command succeeds. Its output is in $tmp/out.
check()
{
    tap_words=$1
    shift
    if "$@" >"$tmp/out" 2>&1; then tap_result ok "$tap_words"; else tap_result not-ok "$tap_words" "$tmp/out"; fi
}

# check_fails WORDS COMMAND...: the command fails by an exit code (not by a signal).
check_fails()
{
    tap_words=$1
    shift
    "$@" >"$tmp/out" 2>&1
    tap_rc=$?
    if [ $tap_rc -gt 0 ] && [ $tap_rc -lt 126 ]; then
        tap_result ok "$tap_words"
    else
        echo "exit code $tap_rc" >>"$tmp/out"
        tap_result not-ok "$tap_words" "$tmp/out"
    fi
}

# check_output WORDS PATTERN: what the last command of check or check_fails printed has a
# line that matches the extended regular expression.
check_output()
{
    if grep -Eq -e "$2" "$tmp/out"; then
        tap_result ok "$1"
    else
        echo "(no line matches $2)" >>"$tmp/out"
        tap_result not-ok "$1" "$tmp/out"
    fi
}

# skip WORDS REASON: a case that cannot be tested here.
skip()
{
    tap_count=$((tap_count + 1))
    echo "ok $tap_count - $1 # SKIP $2"
}

# skip_all REASON: nothing in this file can be tested here.
skip_all()
{
    echo "1..0 # SKIP $1"
    exit 0
}

done_testing()
{
    echo "1..$tap_count"
    exit $((tap_failed > 0))
}
