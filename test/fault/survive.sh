# survive.sh - rounds in which a rank is killed while the others go on; read by survive.test and deaths.sh after kill.sh.
# What a survivor checks is in survivors.c.

survivors=$top_builddir/test/fault/survivors
page=$tmp/page
: >"$tmp/times"
kinds='send ssend anysource probe mprobe iprobe wait waitany waitsome test testany testsome persistent persistent-test flood
       flooded asleep asleep-any asleep-probe asleep-ssend asleep-barrier slots rooted large background background-test background-any
       kept made late window-locked window-flushed window-fenced window-posted finalize'
# crowded: shared memory, where all senders to a rank have one small box; untold: the launcher tells of no deaths
ways='self,shm self,tcp mixed crowded'
[ -e "$top_builddir/lib/tern/pmix.la" ] && ways="$ways untold"

# Hosts that are made up: their ranks share no memory, and their daemons pass the word on.
printf '#!/bin/sh\ncd /\nexec sh -c "$2"\n' >"$tmp/agent"
chmod +x "$tmp/agent"

# One round of $kind over $way, by $seed. Adds the microseconds of each survivor to $tmp/times.
live_on()
{
    round_seed=$seed
    random 2
    ranks=$((3 + random))
    random 3
    [ $random = 0 ] && progress=helper || progress=caller
    random 4
    option=$(echo -disable-auto-cleanup --enable-recovery --continuous --mca:orte_enable_recovery:1 | cut -d ' ' -f $((random + 1)) | tr : ' ')
    random 30000
    moment=$random
    rm -f "$page" && truncate -s 4096 "$page"
    case $way in
        mixed) set -- -launcher-exec "$tmp/agent" -hosts a,b -ppn 2 ;;
        crowded) set -- -genv TERN_TRANSPORTS self,shm -genv TERN_SHM_BOXES 0 -genv TERN_SHM_BOX 8K ;;
        untold) set -- -genv TERN_BOOTSTRAP pmix ;;
        *) set -- -genv TERN_TRANSPORTS "$way" ;;
    esac
    run mpiexec "$@" $option -genv TERN_PROGRESS $progress -n $ranks "$survivors" "$page" $moment $kind
    why="$ranks ranks, $progress, $option, moment $moment: $(cat "$tmp/out")"
    awk '/^survivor/ {print $3}' "$tmp/out" >>"$tmp/times"
    [ $rc = 137 ] && [ "$(grep -c '^survivor .* good$' "$tmp/out")" = $((ranks - 1)) ] && [ "$(messages)" = 1 ] &&
        in_err '^mpiexec: rank [0-3] .*was killed by signal 9' || return 1
    since
    why="something is left"
    all_gone
}

# Of $tmp/times, in microseconds: $calls, $median and $worst.
sum_up()
{
    sort -n "$tmp/times" >"$tmp/sorted"
    calls=$(wc -l <"$tmp/sorted")
    median=$(sed -n "$((calls / 2 + 1))p" "$tmp/sorted")
    worst=$(tail -n 1 "$tmp/sorted")
}
