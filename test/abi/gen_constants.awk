# gen_constants.awk - maint/tables/mpi_abi_constants.tsv becomes constants_test.c, a program
# that compares type and value of each constant of mpi.h with the table.
BEGIN {
    FS = "\t"
    print "/* Written by test/abi/gen_constants.awk. */"
    print "#include <mpi.h>"
    print "#include <stdint.h>"
    print "#include <stdio.h>\n"
    print "static int cases, failed;\n"
    print "static void same(const char *name, intptr_t is, intptr_t should)"
    print "{"
    print "    printf(\"%sok %d - %s\\n\", is == should ? \"\" : \"not \", ++cases, name);"
    print "    if (is == should) return;"
    print "    printf(\"#   is %ld, should be %ld\\n\", (long)is, (long)should);"
    print "    failed = 1;"
    print "}\n"
    print "#define HAS_TYPE(x, t) _Static_assert(_Generic((x), t: 1, default: 0), #x \" is of type \" #t)\n"
    print "int main(void)\n{"
}
NR == 1 || $6 == "f" || ($10 != "yes" && $10 != "no-deprecated") { next }
$2 == "MPI_T_cb_safety" || $2 == "MPI_T_source_order" { value($1, $3); next }
{
    print "    HAS_TYPE(" $1 ", " $2 ");"
    # An int constant is usable by the preprocessor.
    if ($2 == "int") print "#if " $1 " != " $3 "\n#error " $1 " is not " $3 "\n#endif"
    value($1, $3)
}
function value(name, v) { cases++; print "    same(\"" name "\", (intptr_t)" name ", " v ");" }
END {
    print "    printf(\"1..%d\\n\", cases);"
    print "    return failed || cases != " cases ";"
    print "}"
}
