/* hosts.c - see hosts.h. */
#include "mpiexec/hosts.h"
#include "mpiexec/textfile.h"
#include "mpiexec/words.h"
#include "mpiexec/xalloc.h"

#include <ctype.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

/* --- names ------------------------------------------------------------------------------------------------------- */

const char *hosts_self(void)
{
    static char name[256];
    if (!name[0] && (gethostname(name, sizeof name - 1) || !name[0])) strcpy(name, "localhost");
    return name;
}

/* Is `text` the numeric address of one of our interfaces? */
static bool is_own_address(const char *text)
{
    struct ifaddrs *all;
    bool own = false;
    if (getifaddrs(&all)) return false;
    for (struct ifaddrs *i = all; i && !own; i = i->ifa_next) {
        char buf[NI_MAXHOST];
        if (!i->ifa_addr) continue;
        int family = i->ifa_addr->sa_family;
        socklen_t len = family == AF_INET ? 16 : family == AF_INET6 ? 28 : 0;
        if (len && !getnameinfo(i->ifa_addr, len, buf, sizeof buf, NULL, 0, NI_NUMERICHOST)) own = !strcmp(buf, text);
    }
    freeifaddrs(all);
    return own;
}

static bool is_self(const char *host)
{
    const char *self = hosts_self();
    size_t bare = strcspn(host, "."), self_bare = strcspn(self, ".");
    if (!strcasecmp(host, "localhost") || !strncasecmp(host, "localhost.", 10)) return true;
    if (!strncmp(host, "127.", 4) || !strcmp(host, "::1")) return true;
    if (!strcasecmp(host, self)) return true;
    bool address = strchr(host, ':') || strspn(host, "0123456789.") == strlen(host);
    /* A short name against a long one; two different long names are different hosts. */
    if (!address && (!host[bare] || !self[self_bare]) && bare == self_bare && !strncasecmp(host, self, bare))
        return true;
    return address && is_own_address(host);
}

const char *hosts_canonical(const char *name) { return is_self(name) ? hosts_self() : name; }

/* What a remote shell could take for something else than a host (an option, a shell's word) is none. */
static bool is_name(const char *s)
{
    if (!isalnum((unsigned char)*s) && *s != '_' && *s != ':' && !(*s & 0x80)) return false;
    for (; *s; s++)
        if (!isalnum((unsigned char)*s) && !strchr("-._:%@", *s) && !(*s & 0x80)) return false;
    return true;
}

/* --- lists ------------------------------------------------------------------------------------------------------- */

static unsigned hash_of(const char *name)
{
    unsigned hash = 5381;
    for (; *name; name++) hash = hash * 33 + (unsigned)tolower((unsigned char)*name);
    return hash;
}

struct host *hosts_find(const struct hosts *h, const char *name)
{
    unsigned hash = hash_of(name);
    for (int i = h->n - 1; i >= 0; i--) /* the last first: many lists name a host once a slot */
        if (h->v[i].hash == hash && !strcasecmp(h->v[i].name, name)) return &h->v[i];
    return NULL;
}

int hosts_add(struct hosts *h, const char *name, int slots, const char *where)
{
    if (!is_name(name)) {
        say("%s: '%s' is not the name of a host", where, name);
        return EXIT_USAGE;
    }
    bool self = is_self(name);
    if (self) name = hosts_self();
    struct host *old = hosts_find(h, name);
    if ((!old && h->n == HOSTS_MAX) || (old ? old->slots : 0) > SLOTS_MAX - slots) {
        say("%s: this version uses at most %d hosts, and %d slots of each", where, HOSTS_MAX, SLOTS_MAX);
        return EXIT_USAGE;
    }
    if (old) {
        old->slots += slots ? slots : 1;
        old->said = true;
        return 0;
    }
    h->v = xrealloc(h->v, sizeof *h->v * ((size_t)h->n + 1));
    h->v[h->n++] = (struct host){
        .name = xstrdup(name), .slots = slots ? slots : 1, .said = slots, .self = self, .hash = hash_of(name)};
    return 0;
}

static int slots_of(const char *word, const char *host, const char *where, int *slots)
{
    char *end;
    long n = strtol(word, &end, 10);
    if (end != word && !*end && n >= 1 && n <= SLOTS_MAX) {
        *slots = (int)n;
        return 0;
    }
    say("%s: '%s' is not a number of slots for host %s", where, word, host);
    return EXIT_USAGE;
}

/* "host", "host:4", "[::1]:4"; "::1" (several colons) carries no slots. *name_p is the name, which begins in `entry`.
 */
static int split(char *entry, const char *where, char **name_p, int *slots)
{
    char *colon = strchr(entry, ':');
    *name_p = entry;
    *slots = 0;
    if (*entry == '[') {
        char *close = strchr(entry, ']');
        if (!close || (close[1] && close[1] != ':')) {
            say("%s: '%s' is not an address in brackets", where, entry);
            return EXIT_USAGE;
        }
        *name_p = entry + 1;
        *close = 0;
        colon = close[1] ? close + 1 : NULL;
    } else if (colon && strchr(colon + 1, ':')) {
        colon = NULL;
    }
    if (!colon) return 0;
    *colon = 0;
    return slots_of(colon + 1, *name_p, where, slots);
}

int hosts_list(struct hosts *h, const char *list)
{
    char *copy = xstrdup(list), *rest = copy, *entry, *name;
    int rc = 0, slots;
    while (!rc && (entry = strsep(&rest, ",")))
        if (*entry && !(rc = split(entry, "the host list", &name, &slots)))
            rc = hosts_add(h, name, slots, "the host list");
    free(copy);
    if (!rc && !h->n) {
        say("the host list '%s' names no host", list);
        return EXIT_USAGE;
    }
    return rc;
}

/* The words behind a host in a file. The slots that are said there count more than those at the name. */
static int read_words(char **save, const char *host, const char *path, int *slots)
{
    static bool noted;
    int most = 0, rc = 0;
    for (char *word; !rc && (word = strtok_r(NULL, " \t\r", save));) {
        if (!strncmp(word, "slots=", 6))
            rc = slots_of(word + 6, host, path, slots);
        else if (!strncmp(word, "max_slots=", 10) || !strncmp(word, "max-slots=", 10))
            rc = slots_of(word + 10, host, path, &most);
        else if (!noted) {
            say("note: %s: '%s' of host %s has no meaning here (slots=N has)", path, word, host);
            noted = true;
        }
    }
    if (!*slots) *slots = most; /* more ranks than that are never refused */
    return rc;
}

struct host_file {
    struct hosts *hosts;
    const char *path;
};

static int read_line(void *arg, int number, char *line)
{
    const struct host_file *f = arg;
    char *save, *name;
    int slots;
    (void)number;
    line[strcspn(line, "#\n")] = 0;
    char *entry = strtok_r(line, " \t\r", &save);
    if (!entry) return 0;
    int rc = split(entry, f->path, &name, &slots);
    if (!rc) rc = read_words(&save, name, f->path, &slots);
    return rc ? rc : hosts_add(f->hosts, name, slots, f->path);
}

int hosts_file(struct hosts *h, const char *path)
{
    struct host_file file = {h, path};
    int rc = textfile_read(path, "the host file", read_line, &file);
    if (!rc && !h->n) {
        say("the host file %s names no host", path);
        return EXIT_USAGE;
    }
    return rc;
}

int hosts_pick(struct hosts *all, const struct hosts *list)
{
    struct hosts picked = {0};
    int rc = 0;
    for (int i = 0; i < list->n && !rc; i++) {
        const struct host *wanted = &list->v[i], *known = hosts_find(all, wanted->name);
        if (!known) {
            say("host %s of the host list is not in the host file", wanted->name);
            rc = EXIT_USAGE;
        } else {
            rc = hosts_add(&picked, wanted->name, wanted->said ? wanted->slots : known->slots, "the host list");
        }
    }
    hosts_free(rc ? &picked : all);
    if (!rc) *all = picked;
    return rc;
}

void hosts_drop_self(struct hosts *h)
{
    int kept = 0;
    for (int i = 0; i < h->n; i++)
        if (h->v[i].self)
            free(h->v[i].name);
        else
            h->v[kept++] = h->v[i];
    h->n = kept;
}

void hosts_free(struct hosts *h)
{
    for (int i = 0; i < h->n; i++) free(h->v[i].name);
    free(h->v);
    *h = (struct hosts){0};
}

void hosts_sort(struct hosts *h, bool descending)
{
    for (int i = 1; i < h->n; i++) {
        struct host moved = h->v[i];
        int at = i;
        for (; at && (descending ? h->v[at - 1].slots < moved.slots : h->v[at - 1].slots > moved.slots); at--)
            h->v[at] = h->v[at - 1];
        h->v[at] = moved;
    }
}
