/* rankrun.c - see rankrun.h. */
#include "obj/rankrun.h"

#include <stdlib.h>

/* ---- what two runs have in common ---- */

/* The greatest common divisor of a and m; *inverse_p: the number whose product with a / gcd is 1 modulo m / gcd. */
static int64_t divisor(int64_t a, int64_t m, int64_t *inverse_p)
{
    int64_t r = m, next_r = a, t = 0, next_t = 1; /* r = t * a modulo m, all the way */
    while (next_r) {
        int64_t q = r / next_r, swap = r - q * next_r;
        r = next_r;
        next_r = swap;
        swap = t - q * next_t;
        t = next_t;
        next_t = swap;
    }
    *inverse_p = t < 0 ? t + m / r : t;
    return r;
}

static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b && (a < 0) != (b < 0)); }
static int64_t modulo(int64_t a, int64_t m) { return (a % m + m) % m; }

bool run_common(const struct rank_run *a, const struct rank_run *b, struct run_cut *cut)
{
    int64_t s = a->stride, t = run_step(b), inverse, low = run_low(b), high = run_high(b);
    /* places whose index lies between b's ends */
    int64_t from = s > 0 ? -floor_div(a->first - low, s) : -floor_div(high - a->first, -s);
    int64_t to = s > 0 ? floor_div(high - a->first, s) : floor_div(a->first - low, -s);
    if (from < 0) from = 0;
    if (to >= a->count) to = a->count - 1;
    if (from > to) return false;
    /* of these, the ones on b's grid: first + i * s = low modulo t */
    int64_t g = divisor(modulo(s, t), t, &inverse), step = t / g, d = low - a->first;
    if (d % g) return false;
    int64_t i = modulo(modulo(d / g, step) * inverse, step);
    i = from + modulo(i - from, step);
    if (i > to) return false;
    *cut = (struct run_cut){(int32_t)i, (int32_t)step, (int32_t)((to - i) / step + 1)};
    return true;
}

/* ---- lists ---- */

static void push(struct run_list *l, uint32_t first, int32_t stride, int32_t count)
{
    if (l->n == l->room) {
        uint32_t room = l->room ? 2 * l->room : 8;
        struct rank_run *run = realloc(l->run, room * sizeof *run);
        if (!run) {
            l->failed = true;
            return;
        }
        l->run = run;
        l->room = room;
    }
    l->run[l->n++] = (struct rank_run){l->size, count, first, stride};
    l->size += count;
}

/* Takes the run in, if it continues the last one. */
static bool extend(struct run_list *l, uint32_t first, int32_t stride, int32_t count)
{
    struct rank_run *last = &l->run[l->n - 1];
    int64_t gap = (int64_t)first - run_at(last, last->count - 1);
    if ((last->count > 1 && gap != last->stride) || (count > 1 && gap != stride)) return false;
    if (!gap || gap > INT32_MAX || gap < -INT32_MAX) return false;
    last->stride = (int32_t)gap;
    last->count += count;
    l->size += count;
    return true;
}

/* Two indices are always a progression. If the last run is no more than that, its second index may begin a better one. */
static bool part(struct run_list *l)
{
    struct rank_run *last = &l->run[l->n - 1];
    if (last->count != 2 || run_step(last) == 1) return false;
    uint32_t second = run_at(last, 1);
    last->count = last->stride = 1;
    l->size--;
    push(l, second, 1, 1);
    return !l->failed;
}

void runs_add(struct run_list *l, uint32_t first, int32_t stride, int32_t count)
{
    if (count <= 0 || l->failed) return;
    if (count == 1) stride = 1;
    if (l->n && (extend(l, first, stride, count) || (part(l) && extend(l, first, stride, count)))) return;
    if (!l->failed) push(l, first, stride, count);
}

void runs_free(struct run_list *l)
{
    free(l->run);
    *l = (struct run_list){0};
}
