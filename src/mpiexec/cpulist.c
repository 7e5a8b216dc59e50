/* cpulist.c - see cpulist.h. */
#include "mpiexec/cpulist.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* One number, or a range of them; *at moves behind it. False: there is none. */
static bool get_range(const char **at, int *from, int *to)
{
    char *end;
    if (!isdigit((unsigned char)**at)) return false;
    long a = strtol(*at, &end, 10), b = a;
    if (*end == '-') {
        if (!isdigit((unsigned char)end[1])) return false;
        b = strtol(end + 1, &end, 10);
    }
    if (a > b || b > CPULIST_MAX) return false;
    *from = (int)a;
    *to = (int)b;
    *at = end;
    return true;
}

/* The ranges of a list one after the other; *at ends at the first character that does not belong to it. */
static bool next_range(const char **at, int *from, int *to, bool first)
{
    if (!first) {
        if (**at != ',') return false;
        ++*at;
    }
    return get_range(at, from, to);
}

/* How many numbers a list has. 0: it is no list, or has more than CPULIST_MAX. */
static int count_numbers(const char *list)
{
    int n = 0, from, to;
    const char *at = list;
    do {
        if (!next_range(&at, &from, &to, at == list)) return 0;
        n += to - from + 1;
    } while (*at && n <= CPULIST_MAX);
    return n <= CPULIST_MAX ? n : 0;
}

bool cpulist_is_list(const char *list) { return count_numbers(list); }

static hwloc_obj_type_t grain_of(hwloc_topology_t t, bool hwthreads)
{
    return hwthreads || hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_CORE) < 1 ? HWLOC_OBJ_PU : HWLOC_OBJ_CORE;
}

/* Adds the grains with these numbers within a set of cpus. */
static bool add_grains(hwloc_topology_t t, bool hwthreads, hwloc_const_cpuset_t inside, int from, int to,
                       hwloc_bitmap_t set)
{
    hwloc_obj_type_t type = grain_of(t, hwthreads);
    for (int i = from; i <= to; i++) {
        hwloc_obj_t o = hwloc_get_obj_inside_cpuset_by_type(t, inside, type, (unsigned)i);
        if (!o) return false;
        hwloc_bitmap_or(set, set, o->cpuset);
    }
    return true;
}

/* "0,2-3" within a set of cpus, up to the end or a ';'. */
static bool add_list(hwloc_topology_t t, bool hwthreads, hwloc_const_cpuset_t inside, const char **at,
                     hwloc_bitmap_t set)
{
    int from, to;
    for (bool first = true; first || (**at && **at != ';'); first = false)
        if (!next_range(at, &from, &to, first) || !add_grains(t, hwthreads, inside, from, to, set)) return false;
    return true;
}

bool cpulist_all(hwloc_topology_t t, bool hwthreads, const char *list, hwloc_bitmap_t set)
{
    hwloc_bitmap_zero(set);
    return add_list(t, hwthreads, hwloc_topology_get_topology_cpuset(t), &list, set) && !*list;
}

bool cpulist_nth(hwloc_topology_t t, bool hwthreads, const char *list, int i, hwloc_bitmap_t set)
{
    int numbers = count_numbers(list), from, to;
    const char *at = list;
    hwloc_bitmap_zero(set);
    if (!numbers) return false;
    i %= numbers;
    while (next_range(&at, &from, &to, at == list) && i > to - from) i -= to - from + 1;
    return add_grains(t, hwthreads, hwloc_topology_get_topology_cpuset(t), from + i, from + i, set);
}

/* --- slots of a rank file ---------------------------------------------------------------------------------------- */

/* What stands before ':' : a socket, or '*' for all of them. */
static bool get_socket(const char **at, int *first, int *last)
{
    if (**at == '*') {
        *first = 0;
        *last = CPULIST_MAX;
        ++*at;
        return true;
    }
    return get_range(at, first, last) && *first == *last;
}

static bool add_socket(hwloc_topology_t t, bool hwthreads, hwloc_const_cpuset_t inside, const char **at,
                       hwloc_bitmap_t set)
{
    if (**at != '*') return add_list(t, hwthreads, inside, at, set);
    hwloc_bitmap_or(set, set, inside);
    ++*at;
    return true;
}

/* "1:0-2" or "0-2"; *at ends at the ';' or the end. */
static bool add_slots(hwloc_topology_t t, bool hwthreads, const char **at, hwloc_bitmap_t set)
{
    const char *colon = strpbrk(*at, ":;"), *cores = *at;
    int first, last;
    if (!colon || *colon == ';') return add_list(t, hwthreads, hwloc_topology_get_topology_cpuset(t), at, set);
    if (!get_socket(at, &first, &last) || **at != ':') return false;
    int sockets = hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_PACKAGE);
    if (last == CPULIST_MAX) last = sockets - 1;
    if (last >= sockets) return false;
    for (int i = first; i <= last; i++) {
        cores = colon + 1;
        hwloc_obj_t socket = hwloc_get_obj_by_type(t, HWLOC_OBJ_PACKAGE, (unsigned)i);
        if (!add_socket(t, hwthreads, socket->cpuset, &cores, set)) return false;
    }
    *at = cores;
    return !**at || **at == ';';
}

bool cpulist_slots(hwloc_topology_t t, bool hwthreads, const char *slots, hwloc_bitmap_t set)
{
    hwloc_bitmap_zero(set);
    for (;; slots++) {
        if (!add_slots(t, hwthreads, &slots, set)) return false;
        if (!*slots) return true;
    }
}

bool cpulist_is_slots(const char *slots)
{
    for (;; slots++) {
        int from, to;
        const char *colon = strpbrk(slots, ":;");
        if (colon && *colon == ':' && (!get_socket(&slots, &from, &to) || *slots++ != ':')) return false;
        if (colon && *colon == ':' && *slots == '*')
            slots++;
        else
            for (bool first = true; first || (*slots && *slots != ';'); first = false)
                if (!next_range(&slots, &from, &to, first)) return false;
        if (*slots != ';') return !*slots;
    }
}
