/*
 * codes.c - error classes, codes and strings that users add and remove (MPI-5.0 section 9.5), before MPI_Init, in
 * between and after MPI_Finalize; MPI_LASTUSEDCODE follows. Error handlers live as long.
 */
#include "../check.h"

static const char *string_of(int code)
{
    static char text[MPI_MAX_ERROR_STRING];
    int len = -1;
    text[0] = 0;
    CHECK_OK(MPI_Error_string(code, text, &len));
    CHECK(len == (int)strlen(text), "code %d: length %d of '%s'", code, len, text);
    return text;
}

static int class_of(int code)
{
    int class = -1;
    CHECK_OK(MPI_Error_class(code, &class));
    return class;
}

static void added(void)
{
    int class = -1, other = -1, code[3], again = -1;
    CHECK_OK(MPI_Add_error_class(&class));
    CHECK(class > MPI_ERR_LASTCODE, "class %d is not above the standard's", class);
    CHECK(class_of(class) == class, "the class of class %d is %d", class, class_of(class));
    CHECK(!*string_of(class), "a new class has the string '%s'", string_of(class));
    for (int i = 0; i < 3; i++) {
        CHECK_OK(MPI_Add_error_code(i < 2 ? class : MPI_ERR_TAG, &code[i]));
        CHECK(code[i] > class, "code %d is not above class %d", code[i], class);
        CHECK(class_of(code[i]) == (i < 2 ? class : MPI_ERR_TAG), "the class of code %d is %d", code[i], class_of(code[i]));
    }
    CHECK_OK(MPI_Add_error_string(class, "a class"));
    CHECK_OK(MPI_Add_error_string(code[0], "first"));
    CHECK_OK(MPI_Add_error_string(code[0], "the first")); /* in place of the old one */
    CHECK(!strcmp(string_of(class), "a class") && !strcmp(string_of(code[0]), "the first"), "'%s'", string_of(code[0]));
    CHECK_OK(MPI_Remove_error_string(code[0]));
    CHECK(!*string_of(code[0]), "a removed string is '%s'", string_of(code[0]));
    CHECK_OK(MPI_Remove_error_code(code[2]));
    CHECK_OK(MPI_Remove_error_code(code[1]));
    CHECK_OK(MPI_Remove_error_code(code[0]));
    CHECK_OK(MPI_Remove_error_class(class));
    CHECK_OK(MPI_Add_error_class(&other));
    CHECK(other > code[2], "class %d may be taken for the removed %d", other, class);
    CHECK_OK(MPI_Add_error_code(other, &again));
}

/* The handler of MPI_COMM_SELF returns. */
static void wrong(void)
{
    int class, code, removed, x;
    static char longest[MPI_MAX_ERROR_STRING + 1];
    MPI_Add_error_class(&class);
    MPI_Add_error_code(class, &code);
    MPI_Add_error_class(&removed);
    MPI_Remove_error_class(removed);
    int bad[] = {-1, removed, code + 1000, MPI_ERR_LASTCODE - 1};
    for (int i = 0; i < 4; i++) {
        char text[MPI_MAX_ERROR_STRING];
        CHECK_CLASS(MPI_Error_class(bad[i], &x), MPI_ERR_ARG);
        CHECK_CLASS(MPI_Error_string(bad[i], text, &x), MPI_ERR_ARG);
        CHECK_CLASS(MPI_Add_error_code(bad[i], &x), MPI_ERR_ARG);
        CHECK_CLASS(MPI_Add_error_string(bad[i], "no"), MPI_ERR_ARG);
        CHECK_CLASS(MPI_Remove_error_class(bad[i]), MPI_ERR_ARG);
        CHECK_CLASS(MPI_Remove_error_code(bad[i]), MPI_ERR_ARG);
        CHECK_CLASS(MPI_Remove_error_string(bad[i]), MPI_ERR_ARG);
    }
    CHECK_CLASS(MPI_Add_error_code(code, &x), MPI_ERR_ARG);          /* not a class */
    CHECK_CLASS(MPI_Remove_error_class(class), MPI_ERR_ARG);         /* has a code */
    CHECK_CLASS(MPI_Remove_error_class(code), MPI_ERR_ARG);          /* a code */
    CHECK_CLASS(MPI_Remove_error_code(class), MPI_ERR_ARG);          /* a class */
    MPI_Add_error_string(code, "has a string");
    CHECK_WORDS(MPI_Remove_error_code(code), MPI_ERR_ARG, "still has a string");
    MPI_Remove_error_string(code);
    CHECK_CLASS(MPI_Remove_error_string(code), MPI_ERR_ARG);         /* has none */
    CHECK_CLASS(MPI_Add_error_string(MPI_ERR_TAG, "no"), MPI_ERR_ARG); /* the standard's */
    CHECK_CLASS(MPI_Remove_error_class(MPI_ERR_TAG), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Remove_error_code(MPI_ERR_TAG), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Remove_error_string(MPI_ERR_TAG), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Add_error_string(code, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Add_error_class(NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Add_error_code(class, NULL), MPI_ERR_ARG);
    memset(longest, 'x', MPI_MAX_ERROR_STRING);
    CHECK_CLASS(MPI_Add_error_string(code, longest), MPI_ERR_ARG);
    longest[MPI_MAX_ERROR_STRING - 1] = 0;
    CHECK_OK(MPI_Add_error_string(code, longest));
    CHECK(!strcmp(string_of(code), longest), "the longest string came back as '%s'", string_of(code));
}

static int last_used(void)
{
    int *value = NULL, flag = 0;
    CHECK_OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &value, &flag));
    CHECK(flag && value, "MPI_LASTUSEDCODE is not set");
    return flag ? *value : -1;
}

static void last_used_follows(void)
{
    int class, code, before = last_used();
    MPI_Add_error_class(&class);
    CHECK(last_used() == class && class > before, "MPI_LASTUSEDCODE is %d behind class %d", last_used(), class);
    MPI_Add_error_code(MPI_ERR_OP, &code);
    CHECK(last_used() == code, "MPI_LASTUSEDCODE is %d behind code %d", last_used(), code);
    MPI_Remove_error_code(code);
    CHECK(last_used() == code, "MPI_LASTUSEDCODE went back to %d", last_used());
}

static int seen;
static void note(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    seen = *code;
}

/* A handler made before MPI_Init; it is called with a code of the user's. */
static void called(MPI_Errhandler h)
{
    int class, code;
    MPI_Comm dup;
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    CHECK_OK(MPI_Comm_set_errhandler(dup, h));
    MPI_Add_error_class(&class);
    MPI_Add_error_code(class, &code);
    CHECK_OK(MPI_Comm_call_errhandler(dup, code));
    CHECK(seen == code, "the handler got %d instead of %d", seen, code);
    MPI_Comm_free(&dup);
}

int main(int argc, char **argv)
{
    int early, code;
    MPI_Errhandler h, late;
    added();
    MPI_Add_error_class(&early);
    MPI_Add_error_string(early, "made early");
    CHECK_OK(MPI_Comm_create_errhandler(note, &h));
    long before = check_failures;
    check_start(&argc, &argv);
    check_failures += before;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK(!strcmp(string_of(early), "made early"), "MPI_Init forgot a string: '%s'", string_of(early));
    CHECK_OK(MPI_Add_error_code(early, &code));
    added();
    wrong();
    last_used_follows();
    called(h);
    int rc = check_done();
    added();
    CHECK(class_of(code) == early, "MPI_Finalize forgot code %d", code);
    CHECK_OK(MPI_Errhandler_free(&h));
    CHECK_OK(MPI_Comm_create_errhandler(note, &late));
    CHECK_OK(MPI_Errhandler_free(&late));
    return rc || check_failures;
}
