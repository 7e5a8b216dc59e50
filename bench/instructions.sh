#!/bin/sh
# instructions.sh - counts the instructions of MPI_Send and MPI_Isend of 8 bytes, from the call down to the message in
# the receiver's ring, by valgrind's callgrind; with the part of each function.
#
#     bench/instructions.sh BUILD [FOLDER]
#
# BUILD is a build folder of Tern; callgrind's files stay in FOLDER, if given. Prints, for each of the two calls, the
# functions and "send_instructions N" or "isend_instructions N", on average over the calls. Needs valgrind and perl.

build=${1:?which build folder?}
program=$build/bench/instructions
if [ -n "$2" ]; then
    out=$2
    mkdir -p "$out" || exit 1
else
    out=$(mktemp -d) || exit 1
    trap 'rm -rf "$out"' EXIT
fi

# count CALL: runs the program with rank 0 under callgrind, which collects inside of measured_CALL only.
count()
{
    rm -f "$out/$1".*
    "$build/bin/mpiexec" --timeout 120 \
        -n 1 valgrind --tool=callgrind --callgrind-out-file="$out/$1.callgrind" --log-file="$out/$1.log" \
        --collect-atstart=no --toggle-collect="measured_$1" "$program" : -n 1 "$program" >"$out/$1.out" || return
    callgrind_annotate --threshold=100 --auto=no "$out/$1.callgrind" >"$out/$1.txt" || return
    # Lines of functions: "1,234 (12.34%)  file:function [object]"; those of the program itself are its loop.
    awk -v call="$1" '
        FNR == NR { if ($1 == "sends_measured") n = $2; next }
        !/^ *[0-9][0-9,]* (\( *[0-9.]*%\) )?.*:/ || /PROGRAM TOTALS/ { next }
        {
            instructions = $1
            gsub(/,/, "", instructions)
            sub(/^ *[0-9,]* *(\( *[0-9.]*%\))? */, "")
            where = $0
            sub(/ *\[[^]]*\]$/, where == $0 ? "" : "", where)
            sub(/.*\//, "", where)
            if (where ~ /:measured_/) next
            printf "%8.1f  %s\n", instructions / n, where
            total += instructions
        }
        END {
            if (!n || !total) { print "instructions.sh: no figures for " call; exit 1 }
            printf "%s_instructions %.1f\n\n", call, total / n
        }' "$out/$1.out" "$out/$1.txt"
}

count send && count isend
