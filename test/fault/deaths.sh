#!/bin/sh
# deaths.sh COUNT [SEED] - kills COUNT ranks, each in a job of its own at a random moment of an operation of a random kind,
# over shared memory, TCP and both; the survivors go on (survive.sh). Prints how long the survivors' calls took to end, what
# failed, and what was left. `make check-deaths DEATHS=10000` runs it; by hand it needs top_srcdir, top_builddir and mpiexec
# in PATH. Exit code 1: a round failed, the median is above 100 ms, the worst above 1 s, or something is left.
: "${top_srcdir:?run me by make check-deaths}"
count=${1:?deaths.sh COUNT [SEED]}
[ -z "$2" ] || TERN_TEST_SEED=$2
. "$top_srcdir/test/tap.sh"
. "$top_srcdir/test/launch/lib.sh"
rounds=$count
. "$top_srcdir/test/fault/kill.sh"
. "$top_srcdir/test/fault/survive.sh"
tern_files() { ls /dev/shm | grep -i tern; }

# one_of WORD...: sets $one to one of them
one_of()
{
    random $#
    shift $random
    one=$1
}

show_failure()
{
    echo "FAILED: round $done_rounds, $kind over $way, seed $round_seed, exit code $rc after $ms ms: $why"
    [ -z "$left$files" ] || echo "   left: processes $left, files $files"
    head -n 20 "$tmp/err" | sed 's/^/   /'
}

clean_up()
{
    kill -KILL $(marked) 2>/dev/null
    rm -rf "${TMPDIR:?}"/*
}

figures()
{
    sum_up
    echo "$done_rounds deaths, $calls calls of survivors: median ${median:-?} us, worst ${worst:-?} us, more than 100 ms:" \
         "$(awk '$1 > 100000' "$tmp/times" | wc -l); failed rounds: $failed"
}

failed=0 done_rounds=0
while [ $done_rounds -lt "$count" ]; do
    done_rounds=$((done_rounds + 1))
    one_of $kinds && kind=$one
    one_of $ways && way=$one
    left= files=
    before=$(wc -l <"$tmp/times")
    live_on || { failed=$((failed + 1)); show_failure; clean_up; }
    sed -n "$((before + 1)),\$p" "$tmp/times" | awk -v w="$way" '{print $1 >> f w}' f="$tmp/way."
    awk -v r="round $done_rounds, $kind over $way, seed $round_seed" \
        '/^survivor/ && $3 > 100000 {print "SLOW: " $3 " us, " $4 " us since the system knew of the death, " r}' "$tmp/out"
    [ $((done_rounds % 100)) = 0 ] && figures
done

[ $((done_rounds % 100)) = 0 ] || figures
cp "$tmp/times" "$tmp/all"
for way in $ways; do
    [ -s "$tmp/way.$way" ] && cp "$tmp/way.$way" "$tmp/times" && sum_up &&
        echo "   over $way: $calls calls, median $median us, worst $worst us"
done
cp "$tmp/all" "$tmp/times"
sum_up
remains=$(tern_files)
echo "left in /dev/shm: ${remains:-nothing}"
[ $failed = 0 ] && [ -z "$remains" ] && [ "${median:-1000000000}" -le 100000 ] && [ "${worst:-1000000000}" -le 1000000 ]
