/* passive.c - see passive.h. */
#include "rma/passive.h"
#include "base/var.h"
#include "obj/info.h"
#include "pt2pt/api.h"
#include "pt2pt/background.h"
#include "pt2pt/lane.h"
#include "rma/landing.h"
#include "rma/win.h"

#include <string.h>

static const char *const words[] = {[PASSIVE_BASIC] = "basic", [PASSIVE_HELPER] = "helper", [PASSIVE_COPY] = "copy"};

bool passive_knows(const char *word)
{
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (!strcmp(word, words[i])) return true;
    return !strcmp(word, "auto");
}

const char *passive_word(const struct win *w) { return words[w->passive]; }

static bool wants_no_helper(void) { return var_is_set(VAR_PROGRESS) && !strcmp(var_text(VAR_PROGRESS), "caller"); }

static enum win_passive choose(struct info *info, bool by_messages)
{
    const char *word = info && !var_is_set(VAR_RMA_PASSIVE) ? info_get(info, "tern_rma_passive") : NULL;
    if (!word || !passive_knows(word)) word = var_text(VAR_RMA_PASSIVE);
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (!strcmp(word, words[i])) return (enum win_passive)i;
    return by_messages && !wants_no_helper() ? PASSIVE_HELPER : PASSIVE_BASIC;
}

int passive_begin(struct win *w, struct info *info, bool by_messages)
{
    struct lane *l = w->comm->lane;
    w->passive = choose(info, by_messages);
    if (w->passive == PASSIVE_BASIC || w->comm->size == 1) return 0;
    int rc = pt_help();
    if (rc) return rc;
    lane_enter(l);
    w->standing = background_stands_by();
    if (w->passive == PASSIVE_COPY) rc = landing_open();
    w->lands = w->passive == PASSIVE_COPY && !rc;
    lane_leave(l);
    return rc;
}

void passive_end(struct win *w)
{
    lane_enter(w->comm->lane);
    if (w->standing) background_stands_down();
    if (w->lands) landing_close();
    lane_leave(w->comm->lane);
    w->standing = w->lands = false;
}
