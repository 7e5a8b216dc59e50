/*
 * dims.c - balanced factors; see dims.h.
 *
 * The factors are divisors of n, of which a number below 2^31 has at most 1600. The
 * search goes over windows [lo, hi] of divisors that may hold all k factors: lo from
 * the k-th root of n downwards, for each lo the least hi with which it can be done, if
 * that is no more apart than the best so far. (A greedy distribution of the primes is
 * the first.) It ends when the best cannot be reached any more, which is soon, since
 * the largest factor must grow as the smallest one falls.
 *
 * Whether j factors in a window can have the product m is found by recursion, and
 * remembered for each (m, j). Some factor has the largest prime of m in it, so only
 * those are tried; and m is outside [lo^j, hi^j] most of the time. The work for a window
 * is therefore bounded by (divisors)^2 * k, and in practice a few hundred steps.
 *
 * In the best window the factors are fixed from the smallest upwards, each as large as
 * the others allow.
 */
#include "topo/dims.h"
#include "base/err.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_DIVISORS = 1600, MAX_PRIMES = 30 }; /* of a number below 2^31, primes with repetition */
struct cell { /* what is known of (m, j) */
    int32_t window; /* in this window: others' entries are stale */
    bool holds;
};

struct search {
    int32_t n;
    int k;
    int ndiv;
    int32_t div[MAX_DIVISORS];     /* ascending */
    int32_t largest[MAX_DIVISORS]; /* prime factor of each */
    struct cell *cell;             /* [j * ndiv + index of m] */
    int32_t window, lo, hi;
    int64_t low[MAX_PRIMES + 1], high[MAX_PRIMES + 1]; /* lo^j and hi^j, cut at n + 1 */
    int64_t steps;
};

/* ---- numbers ---- */

/* Primes of n with repetition, ascending; returns how many. */
static int factorise(int32_t n, int32_t prime[])
{
    int count = 0;
    for (int32_t p = 2; (int64_t)p * p <= n; p += p == 2 ? 1 : 2)
        for (; n % p == 0; n /= p) prime[count++] = p;
    if (n > 1) prime[count++] = n;
    return count;
}

/* base^exponent, cut at limit. */
static int64_t power(int64_t base, int exponent, int64_t limit)
{
    int64_t p = 1;
    while (exponent-- > 0 && p < limit) p *= base;
    return p < limit ? p : limit;
}

/* The least r with r^k >= n. */
static int32_t root_up(int32_t n, int k)
{
    int32_t low = 1, high = n;
    while (low < high) {
        int32_t mid = low + (high - low) / 2;
        if (power(mid, k, n) >= n) high = mid;
        else low = mid + 1;
    }
    return low;
}

static int ascending(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return x < y ? -1 : x > y;
}

/* All products of the primes. */
static void make_divisors(struct search *s, const int32_t prime[], int primes)
{
    int before = 0; /* divisors made before the last prime was used again */
    s->ndiv = 1;
    s->div[0] = 1;
    for (int i = 0; i < primes; i++) {
        int from = i && prime[i] == prime[i - 1] ? before : 0, to = s->ndiv;
        for (int d = from; d < to; d++) s->div[s->ndiv++] = s->div[d] * prime[i];
        before = to;
    }
    qsort(s->div, (size_t)s->ndiv, sizeof s->div[0], ascending);
    for (int d = 0; d < s->ndiv; d++)
        for (int i = 0; i < primes; i++)
            if (s->div[d] % prime[i] == 0) s->largest[d] = prime[i];
}

/* Index of the first divisor that is at least x. */
static int first_from(const struct search *s, int32_t x)
{
    int low = 0, high = s->ndiv;
    while (low < high) {
        int mid = (low + high) / 2;
        if (s->div[mid] < x) low = mid + 1;
        else high = mid;
    }
    return low;
}

/* ---- one window ---- */

/* Can j factors in the window have divisor number m as their product? */
static bool holds(struct search *s, int m, int j)
{
    int32_t value = s->div[m];
    if (value < s->low[j] || value > s->high[j]) return false;
    if (j <= 1 || value == 1) return true;
    struct cell *c = &s->cell[(size_t)j * (size_t)s->ndiv + (size_t)m];
    if (c->window == s->window) return c->holds;
    *c = (struct cell){s->window, false};
    for (int i = first_from(s, s->lo > s->largest[m] ? s->lo : s->largest[m]); i < s->ndiv && s->div[i] <= s->hi; i++) {
        int32_t f = s->div[i];
        s->steps++;
        if (f % s->largest[m] || value % f || !holds(s, first_from(s, value / f), j - 1)) continue;
        c->holds = true;
        break;
    }
    return c->holds;
}

/* The same for a value and another window. */
static bool window_holds(struct search *s, int32_t lo, int32_t hi, int32_t value, int j)
{
    s->window++;
    s->lo = lo;
    s->hi = hi;
    for (int i = 0; i <= j; i++) {
        s->low[i] = power(lo, i, (int64_t)s->n + 1);
        s->high[i] = power(hi, i, (int64_t)s->n + 1);
    }
    return holds(s, first_from(s, value), j);
}

/* ---- all windows ---- */

struct window {
    int32_t lo, hi;
};

static int32_t spread(struct window w) { return w.hi - w.lo; }

/* Each prime, the largest first, goes to what is the least factor so far. */
static struct window greedy(int32_t n, int k, const int32_t prime[], int primes)
{
    int32_t f[MAX_PRIMES];
    struct window w = {n, 1};
    for (int i = 0; i < k; i++) f[i] = 1;
    for (int p = primes - 1; p >= 0; p--) {
        int least = 0;
        for (int i = 1; i < k; i++)
            if (f[i] < f[least]) least = i;
        f[least] *= prime[p];
    }
    for (int i = 0; i < k; i++) {
        if (f[i] < w.lo) w.lo = f[i];
        if (f[i] > w.hi) w.hi = f[i];
    }
    return w;
}

/* The narrowest window that starts at lo, has its end at `least` or above, and can hold the factors becomes the best, if
 * it is no wider. What a window can hold, a wider one can. */
static void extend(struct search *s, int32_t lo, int32_t least, struct window *best)
{
    int low = first_from(s, least), high = first_from(s, lo + spread(*best) + 1) - 1;
    if (high < low || !window_holds(s, lo, s->div[high], s->n, s->k)) return;
    while (low < high) {
        int mid = (low + high) / 2;
        if (window_holds(s, lo, s->div[mid], s->n, s->k)) high = mid;
        else low = mid + 1;
    }
    struct window w = {lo, s->div[high]};
    if (spread(w) < spread(*best) || lo > best->lo) *best = w;
}

static void search_windows(struct search *s, struct window *best)
{
    int32_t prime = s->largest[s->ndiv - 1];
    for (int i = s->ndiv - 1; i >= 0; i--) {
        int32_t lo = s->div[i];
        if (power(lo, s->k, (int64_t)s->n + 1) > s->n) continue;
        int32_t least = root_up(s->n / lo, s->k - 1); /* of the largest factor, when the smallest is lo */
        if (least < prime) least = prime;
        if (least - lo > spread(*best)) break;
        extend(s, lo, least, best);
    }
}

/* The factors in a window that can hold them. */
static void fix_factors(struct search *s, struct window w, int out[])
{
    int32_t left = s->n, lo = w.lo;
    for (int j = s->k; j > 1; j--) {
        int i = first_from(s, root_up(left, j) + 1); /* the smallest is at most the root */
        while (--i >= 0 && s->div[i] > lo)
            if (left % s->div[i] == 0 && window_holds(s, s->div[i], w.hi, left / s->div[i], j - 1)) break;
        lo = out[j - 1] = s->div[i];
        left /= lo;
    }
    out[0] = left;
}

int dims_balance(int32_t n, int k, int out[], int64_t *steps)
{
    int32_t prime[MAX_PRIMES + 1];
    int primes = factorise(n, prime);
    *steps = 0;
    if (k >= primes || k == 1) { /* nothing to put together, or everything */
        for (int i = 0; i < k; i++) out[i] = k == 1 ? n : i < primes ? prime[primes - 1 - i] : 1;
        return 0;
    }
    struct search *s = malloc(sizeof *s);
    if (s) {
        *s = (struct search){.n = n, .k = k};
        make_divisors(s, prime, primes);
        s->cell = calloc((size_t)(k + 1) * (size_t)s->ndiv, sizeof *s->cell);
    }
    if (!s || !s->cell) {
        free(s);
        return err_set(TERN_ERR_NOMEM, "no memory to find the dimensions of a grid of %d processes", n);
    }
    struct window best = greedy(n, k, prime, primes);
    search_windows(s, &best);
    fix_factors(s, best, out);
    *steps = s->steps;
    free(s->cell);
    free(s);
    return 0;
}

/* ---- with entries that are given ---- */

/* What is left for the free entries, and how many those are. */
static int look_at_given(int nnodes, int ndims, const int dims[], int *left, int *free_dims)
{
    *left = nnodes;
    *free_dims = 0;
    for (int i = 0; i < ndims; i++) {
        if (dims[i] < 0) return err_set(TERN_ERR_DIMS, "argument dims[%d] is %d, which is negative", i, dims[i]);
        if (dims[i] == 0) ++*free_dims;
        else if (*left % dims[i])
            return err_set(TERN_ERR_DIMS, "argument nnodes is %d, which is no multiple of the product of the entries given in dims",
                           nnodes);
        else *left /= dims[i];
    }
    if (*free_dims || *left == 1) return 0;
    return err_set(TERN_ERR_DIMS, "argument nnodes is %d, but %s", nnodes,
                   ndims ? "the product of dims, which are all given, is another one" : "there is no dimension");
}

int topo_dims(int nnodes, int ndims, int dims[])
{
    int left, free_dims;
    int64_t steps;
    int rc = look_at_given(nnodes, ndims, dims, &left, &free_dims);
    if (rc || !free_dims) return rc;
    int *made = malloc((size_t)free_dims * sizeof *made);
    if (!made) return err_set(TERN_ERR_NOMEM, "no memory for %d dimensions", free_dims);
    rc = dims_balance(left, free_dims, made, &steps);
    for (int i = 0, next = 0; i < ndims && !rc; i++)
        if (dims[i] == 0) dims[i] = made[next++];
    free(made);
    return rc;
}
