/* objects.c - info objects: pairs, order, lengths and wrong arguments (MPI-5.0 chapter 10). */
#include "../check.h"

static MPI_Info info;
static char text[MPI_MAX_INFO_VAL];
static int flag, n;

/* A string of n letters, valid until the next call. */
static const char *letters(int length)
{
    static char s[2 * MPI_MAX_INFO_VAL];
    memset(s, 'x', (size_t)length);
    s[length] = 0;
    return s;
}

/* Keys have numbers from 0 in the order in which they were set first; setting again changes the value. */
static void pairs(void)
{
    static const char *const keys[] = {"zeta", "alpha", "Alpha", "a key with spaces", "mid"};
    char key[MPI_MAX_INFO_KEY];
    CHECK_OK(MPI_Info_create(&info));
    CHECK_OK(MPI_Info_get_nkeys(info, &n));
    CHECK(n == 0, "a new object has %d keys", n);
    for (int i = 0; i < 5; i++) CHECK_OK(MPI_Info_set(info, keys[i], keys[i]));
    CHECK_OK(MPI_Info_set(info, "alpha", "other"));
    CHECK_OK(MPI_Info_get_nkeys(info, &n));
    CHECK(n == 5, "%d keys", n);
    for (int i = 0; i < 5; i++) {
        CHECK_OK(MPI_Info_get_nthkey(info, i, key));
        CHECK(!strcmp(key, keys[i]), "key %d is %s", i, key);
    }
    CHECK_OK(MPI_Info_delete(info, "zeta"));
    CHECK_OK(MPI_Info_get_nthkey(info, 0, key));
    CHECK(!strcmp(key, "alpha"), "the first key is %s", key);
    CHECK_OK(MPI_Info_get(info, "zeta", 10, text, &flag));
    CHECK(!flag, "a deleted key is there");
    CHECK_OK(MPI_Info_get(info, "alpha", 10, text, &flag));
    CHECK(flag && !strcmp(text, "other"), "alpha is %s", text);
    CHECK_OK(MPI_Info_set(info, "empty", ""));
    CHECK_OK(MPI_Info_get(info, "empty", 10, text, &flag));
    CHECK(flag && !*text, "an empty value is %s", text);
    CHECK_OK(MPI_Info_free(&info));
    CHECK(info == MPI_INFO_NULL, "a freed handle is MPI_INFO_NULL");
}

/* buflen: in, the room with the end; out, what the value takes. 0 asks for that only. */
static void get_string(void)
{
    int len = 0;
    CHECK_OK(MPI_Info_create(&info));
    CHECK_OK(MPI_Info_set(info, "k", "seven77"));
    CHECK_OK(MPI_Info_get_string(info, "k", &len, NULL, &flag));
    CHECK(flag && len == 8, "flag %d, length %d", flag, len);
    CHECK_OK(MPI_Info_get_string(info, "k", &len, text, &flag));
    CHECK(len == 8 && !strcmp(text, "seven77"), "%d: %s", len, text);
    memset(text, '#', 16);
    len = 4;
    CHECK_OK(MPI_Info_get_string(info, "k", &len, text, &flag));
    CHECK(len == 8 && !memcmp(text, "sev\0####", 8), "cut to 4: %d: %.8s", len, text);
    len = 1;
    CHECK_OK(MPI_Info_get_string(info, "k", &len, text, &flag));
    CHECK(len == 8 && !memcmp(text, "\0ev", 3), "cut to 1: %d", len);
    len = 5;
    memset(text, '#', 16);
    CHECK_OK(MPI_Info_get_string(info, "none", &len, text, &flag));
    CHECK(!flag && len == 5 && text[0] == '#', "no such key: flag %d, length %d", flag, len);
    CHECK_OK(MPI_Info_free(&info));
}

/* The older calls: valuelen does not count the end. */
static void get_deprecated(void)
{
    CHECK_OK(MPI_Info_create(&info));
    CHECK_OK(MPI_Info_set(info, "k", "seven77"));
    CHECK_OK(MPI_Info_get_valuelen(info, "k", &n, &flag));
    CHECK(flag && n == 7, "flag %d, length %d", flag, n);
    n = 99;
    CHECK_OK(MPI_Info_get_valuelen(info, "none", &n, &flag));
    CHECK(!flag && n == 99, "no such key: flag %d, length %d", flag, n);
    memset(text, '#', 16);
    CHECK_OK(MPI_Info_get(info, "k", 3, text, &flag));
    CHECK(flag && !memcmp(text, "sev\0####", 8), "cut to 3: %.8s", text);
    CHECK_OK(MPI_Info_get(info, "k", 7, text, &flag));
    CHECK(flag && !strcmp(text, "seven77"), "all of it: %s", text);
    CHECK_OK(MPI_Info_get(info, "k", 0, text, &flag));
    CHECK(flag && !*text, "nothing of it: %s", text);
    CHECK_OK(MPI_Info_free(&info));
}

static void copies(void)
{
    MPI_Info copy;
    char key[MPI_MAX_INFO_KEY];
    CHECK_OK(MPI_Info_create(&info));
    CHECK_OK(MPI_Info_set(info, "b", "1"));
    CHECK_OK(MPI_Info_set(info, "a", "2"));
    CHECK_OK(MPI_Info_dup(info, &copy));
    CHECK_OK(MPI_Info_set(info, "b", "3"));
    CHECK_OK(MPI_Info_free(&info));
    CHECK_OK(MPI_Info_get(copy, "b", 9, text, &flag));
    CHECK(flag && !strcmp(text, "1"), "the copy's b is %s", text);
    CHECK_OK(MPI_Info_get_nthkey(copy, 1, key));
    CHECK(!strcmp(key, "a"), "the copy's order: %s", key);
    CHECK_OK(MPI_Info_free(&copy));
}

/* The longest keys and values go in and out whole; one more is an error. */
static void limits(void)
{
    char key[MPI_MAX_INFO_KEY];
    CHECK_OK(MPI_Info_create(&info));
    CHECK_OK(MPI_Info_set(info, letters(MPI_MAX_INFO_KEY - 1), "1"));
    CHECK_OK(MPI_Info_get_nthkey(info, 0, key));
    CHECK(strlen(key) == MPI_MAX_INFO_KEY - 1, "the longest key has %zu", strlen(key));
    CHECK_OK(MPI_Info_set(info, "v", letters(MPI_MAX_INFO_VAL - 1)));
    CHECK_OK(MPI_Info_get(info, "v", MPI_MAX_INFO_VAL - 1, text, &flag));
    CHECK(strlen(text) == MPI_MAX_INFO_VAL - 1, "the longest value has %zu", strlen(text));
    CHECK_CLASS(MPI_Info_set(info, letters(MPI_MAX_INFO_KEY), "1"), MPI_ERR_INFO_KEY);
    CHECK_CLASS(MPI_Info_delete(info, letters(MPI_MAX_INFO_KEY)), MPI_ERR_INFO_KEY);
    CHECK_CLASS(MPI_Info_get(info, letters(MPI_MAX_INFO_KEY), 1, text, &flag), MPI_ERR_INFO_KEY);
    CHECK_CLASS(MPI_Info_set(info, "w", letters(MPI_MAX_INFO_VAL)), MPI_ERR_INFO_VALUE);
    CHECK_OK(MPI_Info_get_nkeys(info, &n));
    CHECK(n == 2, "what failed set nothing: %d keys", n);
    CHECK_OK(MPI_Info_free(&info));
}

#define EACH_WRONG_INFO(call)                                                                                        \
    for (int w_ = 0; w_ < 3; w_++) {                                                                                 \
        MPI_Info bad = w_ == 0 ? MPI_INFO_NULL : w_ == 1 ? freed : (MPI_Info)MPI_COMM_WORLD;                         \
        CHECK_CLASS(call, MPI_ERR_INFO);                                                                             \
    }

static void wrong_objects(void)
{
    MPI_Info freed, copy = MPI_INFO_NULL;
    CHECK_OK(MPI_Info_create(&info));
    freed = info;
    CHECK_OK(MPI_Info_free(&info));
    n = 1;
    EACH_WRONG_INFO(MPI_Info_set(bad, "k", "v"));
    EACH_WRONG_INFO(MPI_Info_delete(bad, "k"));
    EACH_WRONG_INFO(MPI_Info_get(bad, "k", 1, text, &flag));
    EACH_WRONG_INFO(MPI_Info_get_string(bad, "k", &n, text, &flag));
    EACH_WRONG_INFO(MPI_Info_get_valuelen(bad, "k", &n, &flag));
    EACH_WRONG_INFO(MPI_Info_get_nkeys(bad, &n));
    EACH_WRONG_INFO(MPI_Info_get_nthkey(bad, 0, text));
    EACH_WRONG_INFO(MPI_Info_dup(bad, &copy));
    EACH_WRONG_INFO(MPI_Info_free(&bad));
    CHECK(copy == MPI_INFO_NULL, "a failing copy gave a handle");
}

static void wrong_arguments(void)
{
    int negative = -1;
    CHECK_OK(MPI_Info_create(&info));
    CHECK_OK(MPI_Info_set(info, "k", "v"));
    CHECK_CLASS(MPI_Info_create(NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Info_dup(info, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Info_free(NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Info_create_env(-1, NULL, &info), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Info_create_env(0, NULL, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Info_set(info, NULL, "v"), MPI_ERR_INFO_KEY);
    CHECK_CLASS(MPI_Info_set(info, "", "v"), MPI_ERR_INFO_KEY);
    CHECK_CLASS(MPI_Info_set(info, "k", NULL), MPI_ERR_INFO_VALUE);
    CHECK_CLASS(MPI_Info_delete(info, "none"), MPI_ERR_INFO_NOKEY);
    CHECK_CLASS(MPI_Info_delete(info, NULL), MPI_ERR_INFO_KEY);
    CHECK_CLASS(MPI_Info_get(info, "k", -1, text, &flag), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Info_get(info, "k", 1, NULL, &flag), MPI_ERR_INFO_VALUE);
    CHECK_CLASS(MPI_Info_get(info, "k", 1, text, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Info_get_string(info, "k", &negative, text, &flag), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Info_get_string(info, "k", NULL, text, &flag), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Info_get_valuelen(info, "k", NULL, &flag), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Info_get_nkeys(info, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Info_get_nthkey(info, 0, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Info_get_nthkey(info, -1, text), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Info_get_nthkey(info, 1, text), MPI_ERR_ARG);
    CHECK_OK(MPI_Info_free(&info));
}

/* The words of a failure name the argument and its value. */
static void words(void)
{
    char said[MPI_MAX_ERROR_STRING];
    CHECK_OK(MPI_Info_create(&info));
    MPI_Error_string(MPI_Info_delete(info, "no such key"), said, &n);
    CHECK(strstr(said, "argument key is \"no such key\""), "%s", said);
    MPI_Error_string(MPI_Info_set(MPI_INFO_NULL, "k", "v"), said, &n);
    CHECK(strstr(said, "argument info is MPI_INFO_NULL"), "%s", said);
    CHECK_OK(MPI_Info_free(&info));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    pairs();
    get_string();
    get_deprecated();
    copies();
    limits();
    wrong_objects();
    wrong_arguments();
    words();
    return check_done();
}
