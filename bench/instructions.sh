#!/bin/sh
# instructions.sh - counts, by valgrind's callgrind, with the part of each function, the instructions of
#
#   send, isend     MPI_Send and MPI_Isend of 8 bytes, from the call down to the message in the receiver's ring
#   recv            MPI_Recv of 8 bytes that lie in the ring
#   dup             MPI_Comm_dup of two ranks, at the one that begins it, and MPI_Comm_free
#   allreduce       MPI_Allreduce of 8 bytes on two ranks, by messages
#   iallreduce, ibarrier, ialltoall   MPI_Iallreduce, MPI_Ialltoall of 8 bytes and MPI_Ibarrier on two ranks of a node,
#                   with the MPI_Wait that finds everything there
#   ..._early       the same, started before the other rank has come
#   init            MPI_Init, with the dynamic linker's part
#   test, iprobe    MPI_Test and MPI_Iprobe that find nothing, with their turn of progress
#   deep            MPI_Irecv behind 4,096 others posted for the same source
#   serialized_...  some of these with MPI_THREAD_SERIALIZED
#   alone_...       some of these with MPI_THREAD_MULTIPLE, while one thread has called
#   multiple_send, multiple_isend   MPI_Send and MPI_Isend of 8 bytes with MPI_THREAD_MULTIPLE, when two threads have called, by
#                   bench/locked: instructions and those of them that lock memory
#   multiple_recv, multiple_stored   a receive of 8 bytes in the same way, from MPI_Irecv to the end of MPI_Waitall: posted before the
#                   message comes, and after it has been stored
#   operation       the interpreter of schedules, for each operation, not counting what that does
#
#     bench/instructions.sh BUILD [FOLDER]
#
# BUILD is a build folder of Tern; callgrind's files stay in FOLDER, if given. Prints for each the functions and a line
# "send_instructions N", on average. Needs valgrind and perl.

build=${1:?which build folder?}
if [ -n "$2" ]; then
    out=$2
    mkdir -p "$out" || exit 1
else
    out=$(mktemp -d) || exit 1
    trap 'rm -rf "$out"' EXIT
fi

# watched NAME FUNCTION: valgrind's command line, which collects inside of the function only.
watched()
{
    echo "valgrind --tool=callgrind --callgrind-out-file=$out/$1.callgrind --log-file=$out/$1.log" \
        "--collect-atstart=no --toggle-collect=$2"
}

# print NAME: the functions, without those of the program itself, which are its loop, and the sum. Lines of functions
# look so: "1,234 (12.34%)  file:function [object]".
print()
{
    callgrind_annotate --threshold=100 --auto=no "$out/$1.callgrind" >"$out/$1.txt" || return
    awk -v name="$1" '
        BEGIN { count = name ~ /_early$|^((serialized|alone)_)?recv$/ ? "^early_measured$" : name ~ /^(init|deep)$/ ? "^once_measured$" : "_measured$" }
        FNR == NR { if ($1 ~ count && !n) n = $2; next }
        !/^ *[0-9][0-9,]* (\( *[0-9.]*%\) )?.*:/ || /PROGRAM TOTALS/ { next }
        {
            instructions = $1
            gsub(/,/, "", instructions)
            sub(/^ *[0-9,]* *(\( *[0-9.]*%\))? */, "")
            where = $0
            sub(/ *\[[^]]*\]$/, "", where)
            sub(/.*\//, "", where)
            if (where ~ /:measured_/ || where ~ /^goal_bench.c:/) next
            if (instructions / n >= 0.05) printf "%8.1f  %s\n", instructions / n, where
            total += instructions
        }
        END {
            if (!n || !total) { print "instructions.sh: no figures for " name; exit 1 }
            printf "%s_instructions %.1f\n\n", name, total / n
        }' "$out/$1.out" "$out/$1.txt"
}

# count_call CALL [OPTION...]: with rank 0 of two under callgrind, by the figure's name $level$CALL. The dynamic linker binds all
# symbols at once: what a rare call within MPI_Test needs for its first one would count in some runs (11 of 202). But for MPI_Init.
count_call()
{
    [ $1 = init ] || set -- "$@" -x LD_BIND_NOW=1
    program=$build/bench/instructions
    option=${level:+--${level%_}}
    name=$level$1
    function=measured_$1$pattern
    shift
    rm -f "$out/$name".*
    "$build/bin/mpiexec" --timeout 120 "$@" \
        -n 1 $(watched "$name" "$function") "$program" $option : -n 1 "$program" $option >"$out/$name.out" && print "$name"
}

# count_each CALL...
count_each()
{
    for each; do count_call "$each" || return; done
}

count_operations()
{
    $(watched operation measured_run) "$build/bench/goal_bench" --count >"$out/operation.out" && print operation
}

# count_locked CALL: the batches are those of instructions.c.
count_locked()
{
    "$build/bin/mpiexec" --timeout 120 -n 1 "$build/bench/locked" "multiple_$1" 128 "$build/bench/instructions" --multiple "$1" : \
        -n 1 "$build/bench/instructions" --multiple "$1" >"$out/$1.locked" && cat "$out/$1.locked" && echo
}

level=   # of thread support, before the name of the figure
pattern= # behind the name of the function
by_messages="-x TERN_COLL_NODE=0"
count_each init test iprobe deep send isend recv dup && count_call allreduce $by_messages && count_operations &&
    count_each iallreduce ibarrier ialltoall &&
    pattern='_*' && count_each iallreduce_early ibarrier_early ialltoall_early && pattern= &&
    level=serialized_ && count_each send isend recv iallreduce ibarrier ialltoall &&
    level=alone_ && count_each send isend recv test iallreduce && level= &&
    count_locked send && count_locked isend && count_locked recv && count_locked stored
