/*
 * external.c - the representation "external32": sizes and bytes are those of the table in
 * MPI-5.0 section 14.5.2, and what was packed is unpacked again (5.3).
 */
#include "../check.h"

#include <limits.h>
#include <wchar.h>

#define REP "external32"

static void sizes(void)
{
    static const struct {
        MPI_Datatype t;
        const char *name;
        int size;
    } of[] = {
        {MPI_PACKED, "PACKED", 1},       {MPI_BYTE, "BYTE", 1},
        {MPI_CHAR, "CHAR", 1},           {MPI_UNSIGNED_CHAR, "UNSIGNED_CHAR", 1},
        {MPI_SIGNED_CHAR, "SIGNED", 1},  {MPI_WCHAR, "WCHAR", 2},
        {MPI_SHORT, "SHORT", 2},         {MPI_UNSIGNED_SHORT, "UNSIGNED_SHORT", 2},
        {MPI_INT, "INT", 4},             {MPI_UNSIGNED, "UNSIGNED", 4},
        {MPI_LONG, "LONG", 4},           {MPI_UNSIGNED_LONG, "UNSIGNED_LONG", 4},
        {MPI_LONG_LONG, "LONG_LONG", 8}, {MPI_UNSIGNED_LONG_LONG, "UNSIGNED_LONG_LONG", 8},
        {MPI_FLOAT, "FLOAT", 4},         {MPI_DOUBLE, "DOUBLE", 8},
        {MPI_LONG_DOUBLE, "LDOUBLE", 16}, {MPI_C_BOOL, "C_BOOL", 1},
        {MPI_INT8_T, "INT8_T", 1},       {MPI_INT16_T, "INT16_T", 2},
        {MPI_INT32_T, "INT32_T", 4},     {MPI_INT64_T, "INT64_T", 8},
        {MPI_UINT8_T, "UINT8_T", 1},     {MPI_UINT16_T, "UINT16_T", 2},
        {MPI_UINT32_T, "UINT32_T", 4},   {MPI_UINT64_T, "UINT64_T", 8},
        {MPI_AINT, "AINT", 8},           {MPI_COUNT, "COUNT", 8},
        {MPI_OFFSET, "OFFSET", 8},       {MPI_C_FLOAT_COMPLEX, "C_FLOAT_COMPLEX", 8},
        {MPI_C_DOUBLE_COMPLEX, "C_DOUBLE_COMPLEX", 16}, {MPI_C_LONG_DOUBLE_COMPLEX, "C_LONG_DOUBLE_COMPLEX", 32},
        {MPI_CHARACTER, "CHARACTER", 1}, {MPI_LOGICAL, "LOGICAL", 4},
        {MPI_INTEGER, "INTEGER", 4},     {MPI_REAL, "REAL", 4},
        {MPI_COMPLEX, "COMPLEX", 8},     {MPI_DOUBLE_PRECISION, "DOUBLE_PRECISION", 8},
        {MPI_DOUBLE_COMPLEX, "DOUBLE_COMPLEX", 16}, {MPI_INTEGER2, "INTEGER2", 2},
        {MPI_INTEGER8, "INTEGER8", 8},   {MPI_REAL4, "REAL4", 4},
        {MPI_COMPLEX8, "COMPLEX8", 8},   {MPI_CXX_BOOL, "CXX_BOOL", 1},
        {MPI_LONG_INT, "LONG_INT", 8},   {MPI_DOUBLE_INT, "DOUBLE_INT", 12},
        {MPI_SHORT_INT, "SHORT_INT", 6}, {MPI_LONG_DOUBLE_INT, "LONG_DOUBLE_INT", 20},
    };
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
        MPI_Aint size = -1;
        MPI_Count csize = -1;
        CHECK_OK(MPI_Pack_external_size(REP, 3, of[i].t, &size));
        CHECK_OK(MPI_Pack_external_size_c(REP, 3, of[i].t, &csize));
        CHECK(size == 3 * of[i].size && csize == size, "MPI_%s: %ld bytes", of[i].name, (long)size / 3);
    }
    MPI_Count large = 0;
    CHECK_OK(MPI_Pack_external_size_c(REP, (MPI_Count)1 << 40, MPI_LONG, &large));
    CHECK(large == (MPI_Count)1 << 42, "a large size: %lld", (long long)large);
}

/* One value gives these bytes, and these bytes the value. */
static void bytes_of(MPI_Datatype t, const char *name, const void *value, size_t bytes, int n, const unsigned char *expect)
{
    unsigned char packed[32] = {0}, back[32] = {0};
    MPI_Aint at = 0;
    CHECK_OK(MPI_Pack_external(REP, value, 1, t, packed, sizeof packed, &at));
    CHECK(at == n && !memcmp(packed, expect, (size_t)n), "%s: %ld bytes, %02x %02x %02x %02x ...", name, (long)at, packed[0], packed[1],
          packed[2], packed[3]);
    at = 0;
    CHECK_OK(MPI_Unpack_external(REP, expect, n, &at, back, 1, t));
    CHECK(at == n && !memcmp(back, value, bytes), "%s does not come back", name);
}

#define BYTES(...) (int)sizeof((unsigned char[]){__VA_ARGS__}), (unsigned char[]){__VA_ARGS__}

static void numbers(void)
{
    bytes_of(MPI_SHORT, "short", &(short){-2}, 2, BYTES(0xff, 0xfe));
    bytes_of(MPI_INT, "int", &(int){0x01020304}, 4, BYTES(1, 2, 3, 4));
    bytes_of(MPI_LONG, "long", &(long){-3}, sizeof(long), BYTES(0xff, 0xff, 0xff, 0xfd));
    bytes_of(MPI_LONG, "long", &(long){INT_MIN}, sizeof(long), BYTES(0x80, 0, 0, 0));
    bytes_of(MPI_UNSIGNED_LONG, "unsigned long", &(unsigned long){0xfffffffeu}, sizeof(long), BYTES(0xff, 0xff, 0xff, 0xfe));
    bytes_of(MPI_INT64_T, "int64_t", &(int64_t){0x0102030405060708}, 8, BYTES(1, 2, 3, 4, 5, 6, 7, 8));
    bytes_of(MPI_WCHAR, "wchar_t", &(wchar_t){0x20ac}, sizeof(wchar_t), BYTES(0x20, 0xac));
    bytes_of(MPI_FLOAT, "float", &(float){1.0f}, 4, BYTES(0x3f, 0x80, 0, 0));
    bytes_of(MPI_DOUBLE, "double", &(double){-2.0}, 8, BYTES(0xc0, 0, 0, 0, 0, 0, 0, 0));
    bytes_of(MPI_C_FLOAT_COMPLEX, "complex", (float[2]){1, -2}, 8, BYTES(0x3f, 0x80, 0, 0, 0xc0, 0, 0, 0));
    bytes_of(MPI_LONG_DOUBLE, "long double", &(long double){1.0L}, 10, BYTES(0x3f, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
    bytes_of(MPI_LONG_DOUBLE, "long double", &(long double){-3.0L}, 10, BYTES(0xc0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
    bytes_of(MPI_LONG_DOUBLE, "infinity", &(long double){__builtin_infl()}, 10,
             BYTES(0x7f, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
    bytes_of(MPI_LONG_DOUBLE, "zero", &(long double){0}, 10, BYTES(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
    bytes_of(MPI_C_BOOL, "bool", &(_Bool){1}, 1, BYTES(1));
}

/* More of them than one slice has, with gaps, and through the large-count calls. */
static void arrays(void)
{
    enum { N = 5000 };
    static struct { double d; long l; char c; } a[N], b[N];
    static unsigned char packed[N * 13];
    MPI_Aint at[3] = {0, 8, 16};
    MPI_Count pos = 0;
    MPI_Datatype members[3] = {MPI_DOUBLE, MPI_LONG, MPI_CHAR}, s, t;
    int lens[3] = {1, 1, 1};
    for (int i = 0; i < N; i++) a[i].d = i * 0.5, a[i].l = i - 77, a[i].c = (char)i;
    MPI_Type_create_struct(3, lens, at, members, &s);
    MPI_Type_create_resized(s, 0, sizeof a[0], &t);
    MPI_Type_commit(&t);
    CHECK_OK(MPI_Pack_external_c(REP, a, N, t, packed, sizeof packed, &pos));
    CHECK(pos == N * 13, "packed %lld bytes", (long long)pos);
    CHECK(packed[13 * 4999 + 12] == (4999 & 255), "the last byte is %d", packed[13 * 4999 + 12]);
    pos = 0;
    CHECK_OK(MPI_Unpack_external_c(REP, packed, sizeof packed, &pos, b, N, t));
    int bad = 0;
    for (int i = 0; i < N; i++) bad += a[i].d != b[i].d || a[i].l != b[i].l || a[i].c != b[i].c;
    CHECK(!bad && pos == N * 13, "%d elements differ", bad);
    MPI_Type_free(&s);
    MPI_Type_free(&t);
}

static void bad_arguments(void)
{
    int x = 0;
    char buf[8];
    MPI_Aint at = 0, size;
    MPI_Datatype t;
    MPI_Type_contiguous(2, MPI_INT, &t);
    CHECK_CLASS(MPI_Pack_external("native", &x, 1, MPI_INT, buf, 8, &at), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Pack_external(REP, &x, -1, MPI_INT, buf, 8, &at), MPI_ERR_COUNT);
    CHECK_CLASS(MPI_Pack_external(REP, &x, 1, MPI_DATATYPE_NULL, buf, 8, &at), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Pack_external(REP, &x, 1, t, buf, 8, &at), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Pack_external(REP, &x, 1, MPI_INT, buf, 3, &at), MPI_ERR_TRUNCATE);
    CHECK_CLASS(MPI_Pack_external(REP, &x, 1, MPI_INT, buf, 8, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Pack_external(REP, NULL, 1, MPI_INT, buf, 8, &at), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Pack_external(REP, &x, 1, MPI_INT, NULL, 8, &at), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Unpack_external(REP, buf, 3, &at, &x, 1, MPI_INT), MPI_ERR_TRUNCATE);
    CHECK_CLASS(MPI_Unpack_external(REP, buf, 8, &(MPI_Aint){9}, &x, 1, MPI_INT), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Pack_external_size("external64", 1, MPI_INT, &size), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Pack_external_size(REP, 1, MPI_INT, NULL), MPI_ERR_ARG);
    /* what external32 has no room for is an error rather than another number */
    CHECK_CLASS(MPI_Pack_external(REP, &(long){1L << 40}, 1, MPI_LONG, buf, 8, &at), MPI_ERR_CONVERSION);
    CHECK_CLASS(MPI_Pack_external(REP, &(unsigned long){1UL << 32}, 1, MPI_UNSIGNED_LONG, buf, 8, &at), MPI_ERR_CONVERSION);
    CHECK(at == 0, "a failed call moved the position to %ld", (long)at);
    MPI_Type_free(&t);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    sizes();
    numbers();
    arrays();
    bad_arguments();
    return check_done();
}
