# TERN_WARNINGS - the flags every C file is compiled with: WARNING_CFLAGS.
# With --enable-werror a warning ends the build. STACK_CFLAGS lets the compiler write down
# how much of the stack each function takes, for test/build/stack.test.
AC_DEFUN([TERN_WARNINGS], [
    AC_ARG_ENABLE([werror], [AS_HELP_STRING([--enable-werror], [let warnings end the build])], [],
                  [enable_werror=no])
    WARNING_CFLAGS="-Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes"
    AS_IF([test "x$enable_werror" = xyes], [WARNING_CFLAGS="$WARNING_CFLAGS -Werror"])
    tern_saved_cflags=$CFLAGS
    CFLAGS="$CFLAGS -Werror -fstack-usage"
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM()], [STACK_CFLAGS=-fstack-usage], [STACK_CFLAGS=])
    CFLAGS=$tern_saved_cflags
    rm -f conftest.su
    AC_SUBST([WARNING_CFLAGS])
    AC_SUBST([STACK_CFLAGS])
])
