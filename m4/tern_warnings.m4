# TERN_WARNINGS - the flags every C file is compiled with: WARNING_CFLAGS.
# With --enable-werror a warning ends the build.
AC_DEFUN([TERN_WARNINGS], [
    AC_ARG_ENABLE([werror], [AS_HELP_STRING([--enable-werror], [let warnings end the build])], [],
                  [enable_werror=no])
    WARNING_CFLAGS="-Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes"
    AS_IF([test "x$enable_werror" = xyes], [WARNING_CFLAGS="$WARNING_CFLAGS -Werror"])
    AC_SUBST([WARNING_CFLAGS])
])
