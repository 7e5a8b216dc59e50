/* soft.c - see soft.h. */
#include "dpm/soft.h"
#include "base/err.h"

#include <limits.h>
#include <stdlib.h>

/* A number at *at, which moves behind it. False: there is none. */
static bool number(const char **at, long long *n)
{
    char *end;
    *n = strtoll(*at, &end, 10);
    if (end == *at || *n < -INT_MAX || *n > INT_MAX) return false;
    *at = end;
    return true;
}

/* A triplet at *at. */
static bool triplet(const char **at, long long t[3])
{
    if (!number(at, &t[0])) return false;
    t[1] = t[0];
    t[2] = 1;
    if (**at != ':') return true;
    ++*at;
    if (!number(at, &t[1])) return false;
    if (**at != ':') return true;
    ++*at;
    return number(at, &t[2]) && t[2];
}

/* The largest member from 1 to `most`; 0: there is none. */
static long long largest(const long long t[3], int most)
{
    long long low = t[2] > 0 ? t[0] : t[1], high = t[2] > 0 ? t[1] : t[0], stride = llabs(t[2]);
    if (low > high) return 0;
    if (t[2] < 0) low += (high - low) % stride; /* the members are counted from the first, which is the highest */
    if (most < low) return 0;
    long long last = low + ((high < most ? high : most) - low) / stride * stride;
    return last > 0 ? last : 0;
}

int soft_largest(const char *set, int most, int *n)
{
    long long t[3], best = 0;
    for (const char *at = set;; at++) {
        if (!triplet(&at, t) || (*at && *at != ','))
            return err_set(TERN_ERR_INFO, "info key soft: '%s' is no list of numbers or triplets, such as 1:8:2,16", set);
        long long here = largest(t, most);
        if (here > best) best = here;
        if (!*at) break;
    }
    if (!best) return err_set(TERN_ERR_INFO, "info key soft: '%s' has no number from 1 to %d", set, most);
    *n = (int)best;
    return 0;
}
