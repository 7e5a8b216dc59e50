# gen_mpi_h.awk - the tables of headings, types, constants and functions (in this
# order on the command line) become mpi.h. Run by gen_mpi_h, which sets `version`
# and `entries` (the functions to declare, or "all").
#
# What is in the standard's binary interface comes first, what only a C mpi.h with
# a known MPI_Fint can offer second, what the standard deprecated long ago third, and
# what it removed and the library still defines last (not with "all": the standard has
# it no more).

BEGIN {
    all = entries == "all"
    n = split(entries, word, " ")
    for (i = 1; i <= n; i++) defined_here[word[i]] = 1
    split(version, v, ".")
}

FNR == 1 { table++; next }

# Headings: of (constants or functions), group, title
table == 1 { group[++groups] = $1 " " $2; title[groups] = $3 }

# Types: name, kind, declaration, introduced, deprecated_in, in_abi
table == 2 && $6 == "yes" { type[$2] = type[$2] wrap($3 ";") }
table == 2 && $6 == "no-fint" { fint = fint wrap($3 ";") }
table == 2 && $6 == "no-deprecated" { old = old wrap($3 ";") }
table == 2 && $6 == "no-removed" && !all { removed = removed wrap($3 ";") }

# Constants: name, ctype, value, introduced, group, lang, decl, deprecated_in, removed_in, in_abi.
# The members of the tool interface's two enumerations are part of their types.
table == 3 && ($5 == "t_cbsafety" || $5 == "t_srcorder" || $6 == "f") { next }
table == 3 && $10 == "yes" { body["constants " $5] = body["constants " $5] define($1, $2, $3) }
table == 3 && $10 == "no-deprecated" { old = old define($1, $2, $3) }
table == 3 && $10 == "no-fint" && wanted($1) { fint = fint "extern " $2 $1 ";\n" }

# Functions: name, return, prototype, introduced, group, chapter, large_count_of, deprecated_in,
# removed_in, status, in_abi
#
# An array of weights may be MPI_UNWEIGHTED, an address where compilers know that no array can be: they warn. A pointer
# is the same to the language, and no promise of elements. So: "weights[]" becomes "*weights".
table == 4 && $5 == "topo" {
    while (match($3, /[a-z]*weights\[\]/)) $3 = substr($3, 1, RSTART - 1) "*" substr($3, RSTART, RLENGTH - 2) substr($3, RSTART + RLENGTH)
}
table == 4 && $10 == "removed" && !all && wanted($1) { removed = removed twins($1, $3); next }
table == 4 && ($10 == "removed" || $10 == "disputed" || !wanted($1)) { next }
table == 4 && $11 == "no-fint" { fint = fint twins($1, $3); next }
table == 4 && $11 == "no-deprecated" { old = old twins($1, $3); next }
table == 4 { body["functions " $5] = body["functions " $5] twins($1, $3) }

END {
    print "/*"
    print " * mpi.h - the Message Passing Interface, by Tern MPI " version "."
    print " *"
    print " * Types, values and prototypes are those of the standard binary interface of MPI 5.0, so"
    print " * a program compiled with this file runs with any library that follows the standard."
    print " *"
    print " * Written by maint/gen_mpi_h from maint/tables: change those."
    print " */"
    print "#ifndef TERN_MPI_H"
    print "#define TERN_MPI_H\n"
    print "#include <stdint.h>\n"
    print "#define TERN_VERSION_MAJOR " v[1]
    print "#define TERN_VERSION_MINOR " v[2]
    print "#define TERN_VERSION_PATCH " v[3]
    print "#define TERN_VERSION       " (v[1] * 10000 + v[2] * 100 + v[3]) " /* major * 10000 + minor * 100 + patch */\n"
    print "#ifdef __cplusplus\nextern \"C\" {\n#endif"
    section("Integers", type["integer"])
    section("Handles", type["handle"] type["t_handle"])
    section("Status: the first three fields are the user's", type["struct"])
    section("Enumerations of the tool interface", type["enum"])
    section("Callbacks", type["callback"])
    for (i = 1; i <= groups; i++) section(title[i], body[group[i]])
    section("Outside the binary interface, since the size of a Fortran INTEGER is the compiler's choice:\n" \
            " * handles and statuses in Fortran. MPI_X_toint and MPI_X_fromint are the portable way.", fint)
    section("Outside the binary interface, since deprecated in MPI 2: attributes and error handlers\n" \
            " * by their first names.", old)
    section("Removed from the standard in MPI 3, and still here for programs of MPI 1", removed)
    print "\n#ifdef __cplusplus\n}\n#endif\n\n#endif"
}

function wanted(name) { return all || name in defined_here }

function section(title, text)
{
    if (text == "") return
    print title ~ /\n/ ? "\n/*\n * " title "\n */" : "\n/* " title " */"
    printf "%s", text
}

# The definition of a constant: "#define MPI_INT ((MPI_Datatype)0x209)".
function define(name, ctype, value)
{
    if (ctype != "int") value = "((" ctype ")" value ")"
    else if (value < 0) value = "(" value ")"
    return sprintf("#define %-34s %s\n", name, value)
}

# The prototypes of MPI_X and PMPI_X.
function twins(name, prototype,    at)
{
    at = index(prototype, name "(")
    return wrap(prototype ";") wrap(substr(prototype, 1, at - 1) "P" substr(prototype, at) ";")
}

# Breaks a declaration behind commas so that no line is longer than 120.
function wrap(s,    out, cut)
{
    while (length(s) > 120) {
        for (cut = 120; substr(s, cut - 1, 2) != ", "; cut--) continue
        out = out substr(s, 1, cut - 1) "\n"
        s = "    " substr(s, cut + 1)
    }
    return out s "\n"
}
