# TERN_SANITIZER - --enable-sanitizer=address,undefined or =thread: SANITIZER_FLAGS for
# compiler and linker (the wrapper compilers pass them on: programs need the same run-time
# library), and DEFS_LDFLAGS, which refuses undefined symbols in shared libraries. The
# sanitizers' symbols are resolved at run time, so it is empty with them. gcc's thread
# sanitizer does not model fences and says so for each: that warning is switched off.
AC_DEFUN([TERN_SANITIZER], [
    AC_ARG_ENABLE([sanitizer],
                  [AS_HELP_STRING([--enable-sanitizer=LIST],
                                  [build with address,undefined or with thread sanitizer])],
                  [], [enable_sanitizer=no])
    AS_CASE([$enable_sanitizer],
            [no], [SANITIZER_FLAGS= DEFS_LDFLAGS=-Wl,-z,defs],
            [yes|''], [AC_MSG_ERROR([--enable-sanitizer needs a list, as in =address,undefined])],
            [SANITIZER_FLAGS="-fsanitize=$enable_sanitizer -fno-sanitize-recover=undefined -fno-omit-frame-pointer" DEFS_LDFLAGS=])
    AS_CASE([$enable_sanitizer], [*thread*], [
        tern_saved_cflags=$CFLAGS
        CFLAGS="$CFLAGS -Werror -Wno-tsan"
        AC_COMPILE_IFELSE([AC_LANG_PROGRAM()], [WARNING_CFLAGS="$WARNING_CFLAGS -Wno-tsan"])
        CFLAGS=$tern_saved_cflags
    ])
    AC_SUBST([SANITIZER_FLAGS])
    AC_SUBST([DEFS_LDFLAGS])
])
