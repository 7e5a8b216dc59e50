/* hosts.c - which hosts were named, and whether they are this one. */
#include "mpiexec/hosts.h"
#include "mpiexec/words.h"
#include "mpiexec/xalloc.h"

#include <ctype.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

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
    /* A short name against a long one; two different long names are different hosts. */
    if ((!host[bare] || !self[self_bare]) && bare == self_bare && !strncasecmp(host, self, bare)) return true;
    return (isdigit((unsigned char)host[0]) || strchr(host, ':')) && is_own_address(host);
}

/* "host", "host:4", "::1" (an address in brackets or with several colons carries no slots). */
static int take(char *entry, const char *slots_word, int *slots, const char *where)
{
    char *colon = strchr(entry, ':');
    long n = 1;
    if (colon && !strchr(colon + 1, ':')) {
        *colon = 0;
        slots_word = colon + 1;
    }
    if (slots_word) {
        char *end;
        n = strtol(slots_word, &end, 10);
        if (end == slots_word || *end || n < 1 || n > 1 << 20) {
            say("%s: '%s' is not a number of slots for host %s", where, slots_word, entry);
            return EXIT_USAGE;
        }
    }
    if (!is_self(entry)) {
        say("%s names host %s, but this version starts ranks only on its own host (%s)", where, entry, hosts_self());
        return EXIT_USAGE;
    }
    *slots += (int)n;
    return 0;
}

int hosts_list(const char *list, int *slots)
{
    char *copy = xstrdup(list), *rest = copy, *entry;
    int rc = 0;
    while (!rc && (entry = strsep(&rest, ",")))
        if (*entry) rc = take(entry, NULL, slots, "the host list");
    free(copy);
    return rc;
}

int hosts_file(const char *path, int *slots)
{
    FILE *f = fopen(path, "re");
    char *line = NULL;
    size_t cap = 0;
    int rc = 0, before = *slots;
    if (!f) {
        say("cannot read the host file %s: %s", path, strerror(errno));
        return EXIT_USAGE;
    }
    while (!rc && getline(&line, &cap, f) >= 0) {
        char *save, *slots_word = NULL;
        line[strcspn(line, "#\n")] = 0;
        char *host = strtok_r(line, " \t\r", &save);
        if (!host) continue;
        for (char *word; (word = strtok_r(NULL, " \t\r", &save));)
            if (!strncmp(word, "slots=", 6)) slots_word = word + 6;
        rc = take(host, slots_word, slots, path);
    }
    free(line);
    fclose(f);
    if (!rc && *slots == before) {
        say("the host file %s names no host", path);
        return EXIT_USAGE;
    }
    return rc;
}
