# TERN_RELOCATABLE - how wrapper compilers and pkg-config files find the installation from
# where they themselves are:
#   INSTALLED_PREFIX  what the wrappers fall back to: empty when programs are in PREFIX/bin
#                     (they then use the folder above their own), else the prefix;
#   PC_PREFIX         the prefix seen from the pkg-config files, e.g. ${pcfiledir}/../..
AC_DEFUN([TERN_RELOCATABLE], [
    AS_IF([test "x$prefix" = xNONE], [prefix=$ac_default_prefix])
    AS_IF([test "x$exec_prefix" = xNONE], [exec_prefix='${prefix}'])
    AS_CASE([$libdir], ["$prefix"/*], [libdir='${prefix}'${libdir@%:@"$prefix"}])
    AS_CASE([$bindir], ['${exec_prefix}/bin'|'${prefix}/bin'|"$prefix/bin"], [INSTALLED_PREFIX=],
            [INSTALLED_PREFIX=$prefix])
    AS_CASE([$libdir],
            ['${exec_prefix}/'*|'${prefix}/'*],
            [PC_PREFIX='${pcfiledir}/..'
             tern_rest=${libdir@%:@*/}
             while test "x$tern_rest" != x; do
                 PC_PREFIX=$PC_PREFIX/..
                 AS_CASE([$tern_rest], [*/*], [tern_rest=${tern_rest@%:@*/}], [tern_rest=])
             done],
            [PC_PREFIX=$prefix])
    AC_SUBST([INSTALLED_PREFIX])
    AC_SUBST([PC_PREFIX])
])
