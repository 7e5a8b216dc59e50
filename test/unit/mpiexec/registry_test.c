/* registry_test.c - names, connections and events of jobs; the test plays the ways that questions come by. */
#include "base/err.h"
#include "mpiexec/answer.h"
#include "mpiexec/registry.h"
#include "mpiexec/spawn.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define OTHER 7 /* the line of a spawned job's launcher */

/* The answer that came last. */
static struct {
    int count, status;
    struct asker to;
    uint8_t bytes[8192];
    size_t n;
} last;

static void (*when_answered)(const struct asker *); /* an asker in this process, which may ask again at once */

void asks_answer(const struct asker *a, int status, const void *bytes, size_t n)
{
    assert_true(n <= sizeof last.bytes);
    last.count++;
    last.to = *a;
    last.status = status;
    last.n = n;
    if (n) memcpy(last.bytes, bytes, n);
    if (when_answered) when_answered(a);
}

void asks_refuse(const struct asker *a, int status, const char *fmt, ...)
{
    (void)fmt;
    asks_answer(a, status, NULL, 0);
}

static int fetched = -1;
static uint32_t forwarded;

static size_t offered; /* bytes of the question */

void answer_offer(const struct asker *a, const void *question, size_t n)
{
    (void)a, (void)question;
    offered = n;
}

void answer_fetch(const struct asker *a, uint32_t rank)
{
    (void)a;
    fetched = (int)rank;
}

static int had = -1;

void answer_modex(const struct asker *a, uint32_t rank)
{
    (void)a;
    had = (int)rank;
}

void asks_forward(const struct asker *a, struct route to, enum ask_type type, const void *bytes, size_t n)
{
    (void)a, (void)bytes, (void)n;
    assert_true(type == ASK_FETCH || type == ASK_OFFER || type == ASK_MODEX_OF);
    forwarded = to.line;
}

void asks_send(struct route route, enum ask_type type, uint32_t rank, const void *bytes, size_t n, asks_done_fn done,
               void *arg)
{
    (void)route, (void)type, (void)rank, (void)bytes, (void)n, (void)done, (void)arg;
    fail();
}

bool spawned_route(struct route *route)
{
    (void)route;
    return false;
}

void spawn_take(const struct asker *a, const char *parent, struct ask_in *in) { (void)a, (void)parent, (void)in; }
void spawn_order_taken(const struct asker *a, struct ask_in *in) { (void)a, (void)in; }
void spawn_started(const struct asker *a, struct ask_in *in) { (void)a, (void)in; }
void spawn_failed(const struct asker *a, struct ask_in *in) { (void)a, (void)in; }
void spawn_connected(const struct asker *a, struct ask_in *in) { (void)a, (void)in; }

/* A question by a line, from a rank; its fields by a format: n a number, t a text. The status of its answer; 1: none.
 */
static uint32_t last_id;

static int ask(uint32_t line, uint32_t rank, enum ask_type type, const char *fields, ...)
{
    uint8_t room[8192];
    struct ask_out o = {.bytes = room, .room = sizeof room};
    struct asker a = {.route = {.line = line}, .id = ++last_id, .rank = rank};
    int before = last.count;
    va_list ap;
    va_start(ap, fields);
    for (; *fields; fields++)
        if (*fields == 'n')
            ask_put32(&o, va_arg(ap, uint32_t));
        else
            ask_put_text(&o, va_arg(ap, const char *));
    va_end(ap);
    registry_take(&a, type, o.bytes, o.n);
    return last.count == before ? 1 : last.status;
}

static const char *text(void)
{
    struct ask_in in = ask_of(last.bytes, last.n);
    return ask_get_text(&in, sizeof last.bytes);
}

static uint32_t number(int i)
{
    struct ask_in in = ask_of(last.bytes, last.n);
    while (i--) ask_get32(&in);
    return ask_get32(&in);
}

/* One process has one registry: each test uses names of its own, and ends the job that it adds. */
static int open_first(void **state)
{
    static struct job first = {.name = "first", .size = 4};
    (void)state;
    registry_open(&first);
    return 0;
}

static void add_other(uint32_t size) { assert_true(registry_add("other", size, OTHER)); }

static void names_belong_to_their_job(void **state)
{
    (void)state;
    add_other(2);
    assert_false(registry_add("other", 2, OTHER + 1));
    assert_int_equal(ask(1, 0, ASK_PUBLISH, "tt", "n", "v"), 0);
    assert_int_equal(ask(OTHER, 0, ASK_PUBLISH, "tt", "n", "w"), TERN_ERR_DUPLICATE);
    assert_int_equal(ask(OTHER, 0, ASK_LOOKUP, "nt", 0u, "n"), 0);
    assert_string_equal(text(), "v");
    struct ask_in in = ask_of(last.bytes, last.n); /* and whose it is */
    ask_get_text(&in, sizeof last.bytes);
    assert_int_equal(ask_get32(&in), 0);
    assert_string_equal(ask_get_text(&in, sizeof last.bytes), "first");
    assert_true(ask_done(&in));
    assert_int_equal(ask(OTHER, 0, ASK_UNPUBLISH, "t", "n"), TERN_ERR_ARG);
    assert_int_equal(ask(2, 3, ASK_UNPUBLISH, "t", "n"), 0);
    assert_int_equal(ask(1, 0, ASK_LOOKUP, "nt", 0u, "n"), TERN_ERR_NOT_FOUND);
    assert_int_equal(ask(OTHER, 1, ASK_PUBLISH, "tt", "theirs", "x"), 0);
    registry_end(OTHER);
    assert_int_equal(ask(1, 0, ASK_LOOKUP, "nt", 0u, "theirs"), TERN_ERR_NOT_FOUND);
}

static void lookups_wait(void **state)
{
    (void)state;
    assert_int_equal(ask(1, 0, ASK_LOOKUP, "nt", 1u, "late"), 1);
    uint32_t id = last_id;
    assert_int_equal(ask(2, 0, ASK_LOOKUP, "nt", 1u, "late"), 1);
    assert_int_equal(ask(3, 0, ASK_LOOKUP, "nt", 1u, "late"), 1);
    assert_int_equal(ask(3, 0, ASK_LOOKUP, "nt", 1u, "other name"), 1);
    registry_cancel(&(struct asker){.route = {.line = 2}, .id = last_id - 2}); /* this question */
    registry_cancel(&(struct asker){.route = {.line = 3}});                    /* all of this line */
    int before = last.count;
    assert_int_equal(ask(1, 0, ASK_PUBLISH, "tt", "late", "v"), 0);
    assert_int_equal(last.count, before + 2);
    assert_int_equal(last.to.id, id);
    assert_string_equal(text(), "v");
    assert_int_equal(ask(1, 0, ASK_PUBLISH, "tt", "other name", "v"), 0);
}

static void keys_are_of_two_jobs(void **state)
{
    uint8_t key[ASK_PAIR_KEY];
    (void)state;
    add_other(2);
    assert_int_equal(ask(1, 0, ASK_CONNECT, "t", "other"), 0);
    assert_int_equal(number(0), 2);
    assert_int_equal(last.n, 4 + ASK_PAIR_KEY);
    memcpy(key, last.bytes + 4, sizeof key);
    assert_int_equal(ask(OTHER, 1, ASK_CONNECT, "t", "first"), 0);
    assert_int_equal(number(0), 4);
    assert_memory_equal(last.bytes + 4, key, sizeof key);
    assert_int_equal(ask(1, 0, ASK_DISCONNECT, "t", "other"), 0);
    assert_int_equal(ask(1, 0, ASK_DISCONNECT, "t", "other"), TERN_ERR_NOT_FOUND);
    assert_int_equal(ask(1, 2, ASK_CONNECT, "t", "other"), 0); /* rank 1 of the other job still has it */
    assert_memory_equal(last.bytes + 4, key, sizeof key);
    assert_int_equal(ask(OTHER, 1, ASK_DISCONNECT, "t", "first"), 0);
    assert_int_equal(ask(1, 2, ASK_DISCONNECT, "t", "other"), 0);
    assert_int_equal(ask(1, 2, ASK_CONNECT, "t", "other"), 0);
    assert_memory_not_equal(last.bytes + 4, key, sizeof key);
    registry_end(OTHER);
    assert_int_equal(ask(1, 2, ASK_DISCONNECT, "t", "other"), TERN_ERR_NOT_FOUND);
    assert_int_equal(ask(1, 2, ASK_CONNECT, "t", "other"), TERN_ERR_NOT_FOUND);
}

/* The dead are connected to nobody. */
static void ends_of_processes_end_their_connections(void **state)
{
    uint8_t key[ASK_PAIR_KEY];
    (void)state;
    add_other(2);
    assert_int_equal(ask(OTHER, 1, ASK_CONNECT, "t", "first"), 0);
    memcpy(key, last.bytes + 4, sizeof key);
    assert_int_equal(ask(OTHER, 0, ASK_ENDED, "nnn", 1u, 9u, 0u), 0);
    assert_int_equal(ask(OTHER, 0, ASK_CONNECT, "t", "first"), 0);
    assert_memory_not_equal(last.bytes + 4, key, sizeof key);
    assert_int_equal(ask(1, 0, ASK_ENDED, "nnn", 1u, 9u, 0u), TERN_ERR_ARG); /* no launcher's line */
    assert_int_equal(ask(OTHER, 0, ASK_ENDED, "nnn", 2u, 9u, 0u), TERN_ERR_ARG);
    registry_end(OTHER);
}

static void deaths_are_told(void **state)
{
    (void)state;
    add_other(3);
    assert_int_equal(ask(1, 0, ASK_WATCH, "nt", 0u, "other"), 1);
    assert_int_equal(ask(2, 1, ASK_WATCH, "nt", 1u, "other"), 1);
    int before = last.count;
    assert_int_equal(ask(OTHER, 0, ASK_ENDED, "nnn", 2u, 9u, 0u), 0);
    assert_int_equal(last.count, before + 2); /* one watcher, and the launcher */
    assert_int_equal(ask(1, 0, ASK_WATCH, "nt", 0u, "other"), 0);
    assert_true(!number(0) && number(1) == 1 && number(2) == 2 && number(3) == 9 && !number(4));
    assert_int_equal(ask(OTHER, 0, ASK_ENDED, "nnn", 0u, 0u, 1u), 0);
    assert_int_equal(ask(1, 0, ASK_WATCH, "nt", 2u, "other"), 1);
    registry_cancel(&(struct asker){.route = {.line = 1}});
    before = last.count;
    registry_end(OTHER); /* before all of its ranks were told of: the launcher was killed */
    assert_int_equal(last.count, before);
    assert_int_equal(ask(1, 0, ASK_WATCH, "nt", 2u, "other"), TERN_ERR_NOT_FOUND);
    add_other(1);
    assert_int_equal(ask(1, 0, ASK_WATCH, "nt", 0u, "other"), 1);
    assert_int_equal(ask(OTHER, 0, ASK_ENDED, "nnn", 0u, 0u, 1u), 0);
    assert_int_equal(ask(1, 0, ASK_WATCH, "nt", 0u, "other"), 0); /* until the launcher has gone */
    assert_true(number(0) && number(1) == 1);
    assert_int_equal(ask(1, 0, ASK_CONNECT, "t", "other"), TERN_ERR_NOT_FOUND);
    registry_end(OTHER);
}

/* As PMIx has it: a process takes back its own names only, and all of them at once if it likes. */
static void a_process_withdraws_its_own_names(void **state)
{
    (void)state;
    add_other(2);
    assert_int_equal(ask(1, 0, ASK_PUBLISH, "tt", "w0", "v"), 0);
    assert_int_equal(ask(1, 1, ASK_PUBLISH, "tt", "w1", "v"), 0);
    assert_int_equal(ask(1, 1, ASK_PUBLISH, "tt", "w2", "v"), 0);
    assert_int_equal(ask(1, 1, ASK_WITHDRAW, "t", "w0"), 0);
    assert_int_equal(ask(OTHER, 0, ASK_WITHDRAW, "t", "w0"), 0);
    assert_int_equal(ask(1, 0, ASK_LOOKUP, "nt", 0u, "w0"), 0);
    assert_int_equal(ask(1, 1, ASK_WITHDRAW, "t", "w1"), 0);
    assert_int_equal(ask(1, 0, ASK_LOOKUP, "nt", 0u, "w1"), TERN_ERR_NOT_FOUND);
    assert_int_equal(ask(1, 0, ASK_LOOKUP, "nt", 0u, "w2"), 0);
    assert_int_equal(ask(1, 1, ASK_WITHDRAW, "t", ""), 0);
    assert_int_equal(ask(1, 0, ASK_LOOKUP, "nt", 0u, "w2"), TERN_ERR_NOT_FOUND);
    assert_int_equal(ask(1, 0, ASK_LOOKUP, "nt", 0u, "w0"), 0);
    assert_int_equal(ask(1, 0, ASK_WITHDRAW, "n", 7u), TERN_ERR_ARG);
    assert_int_equal(ask(1, 0, ASK_WITHDRAW, "t", ""), 0);
    registry_end(OTHER);
}

static uint32_t asked_again;

static void watch_again(const struct asker *a)
{
    if (a->route.line != 1 || last.status || number(0)) return;
    uint8_t room[64];
    struct ask_out o = {.bytes = room, .room = sizeof room};
    asked_again += number(1);
    ask_put32(&o, asked_again);
    ask_put_text(&o, "other");
    registry_take(&(struct asker){.route = {.line = 1}, .id = ++last_id}, ASK_WATCH, o.bytes, o.n);
}

/* The server of PMIx asks its next question while it gets an answer. That question was dropped in place of the answered
 * one, and so no further death was told. */
static void a_watcher_may_ask_again_at_once(void **state)
{
    (void)state;
    add_other(3);
    asked_again = 0;
    when_answered = watch_again;
    assert_int_equal(ask(1, 0, ASK_WATCH, "nt", 0u, "other"), 1);
    for (uint32_t r = 0; r < 2; r++) {
        ask(OTHER, 0, ASK_ENDED, "nnn", r, 9u, 0u);
        assert_int_equal(asked_again, r + 1);
    }
    int before = last.count;
    ask(OTHER, 0, ASK_ENDED, "nnn", 2u, 9u, 0u);
    assert_int_equal(last.count, before + 2); /* the end of the job, and the launcher's answer */
    when_answered = NULL;
    registry_end(OTHER);
}

static void what_pmix_has_comes_from_the_owner(void **state)
{
    (void)state;
    add_other(2);
    assert_int_equal(ask(OTHER, 0, ASK_MODEX, "nt", 3u, "first"), 1);
    assert_int_equal(had, 3);
    forwarded = 0;
    assert_int_equal(ask(1, 0, ASK_MODEX, "nt", 1u, "other"), 1);
    assert_int_equal(forwarded, OTHER);
    assert_int_equal(ask(1, 0, ASK_MODEX, "nt", 2u, "other"), TERN_ERR_RANK);
    registry_end(OTHER);
    assert_int_equal(ask(1, 0, ASK_MODEX, "nt", 1u, "other"), TERN_ERR_NOT_FOUND);
}

/* The launcher of the job that has the file is asked, without the job's name. */
static void files_come_from_the_owner(void **state)
{
    (void)state;
    add_other(2);
    offered = 0;
    assert_int_equal(ask(OTHER, 0, ASK_FILE, "nnnnt", 3u, 7u, 0u, 1u, "first"), 1);
    assert_int_equal(offered, ASK_OFFER_BYTES);
    forwarded = 0;
    assert_int_equal(ask(1, 0, ASK_FILE, "nnnnt", 1u, 7u, 0u, 1u, "other"), 1);
    assert_int_equal(forwarded, OTHER);
    assert_int_equal(ask(1, 0, ASK_FILE, "nnnt", 1u, 7u, 0u, "other"), TERN_ERR_NOT_FOUND);
    registry_end(OTHER);
    assert_int_equal(ask(1, 0, ASK_FILE, "nnnnt", 1u, 7u, 0u, 1u, "other"), TERN_ERR_NOT_FOUND);
}

static void cards_come_from_the_owner(void **state)
{
    (void)state;
    add_other(2);
    assert_int_equal(ask(OTHER, 0, ASK_CARD, "nt", 3u, "first"), 1);
    assert_int_equal(fetched, 3);
    assert_int_equal(ask(1, 0, ASK_CARD, "nt", 1u, "other"), 1);
    assert_int_equal(forwarded, OTHER);
    assert_int_equal(ask(1, 0, ASK_CARD, "nt", 2u, "other"), TERN_ERR_RANK);
    registry_end(OTHER);
    assert_int_equal(ask(1, 0, ASK_CARD, "nt", 1u, "other"), TERN_ERR_NOT_FOUND);
}

/* Whatever comes is answered, or waits; nothing is read that is not there. */
static void random_bytes(void **state)
{
    unsigned seed = (unsigned)getpid();
    (void)state;
    print_message("seed %u\n", seed);
    add_other(2);
    for (int i = 0; i < 200000; i++) {
        size_t n = (size_t)rand_r(&seed) % 24;
        uint8_t *bytes = malloc(n + 1); /* of its own, so that a checker sees what is read beyond */
        for (size_t k = 0; k < n; k++) bytes[k] = rand_r(&seed) % 3 ? 0 : (uint8_t)rand_r(&seed) % 8;
        struct asker a = {
            .route = {.line = rand_r(&seed) % 2 ? OTHER : 1}, .id = ++last_id, .rank = (uint32_t)rand_r(&seed) % 2};
        registry_take(&a, (enum ask_type)(ASK_LOOK + (unsigned)rand_r(&seed) % (ASK_TYPES - ASK_LOOK)), bytes, n);
        free(bytes);
    }
    registry_end(OTHER);
    assert_int_equal(ask(1, 0, ASK_PUBLISH, "tt", "after", "v"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_belong_to_their_job),
        cmocka_unit_test(lookups_wait),
        cmocka_unit_test(keys_are_of_two_jobs),
        cmocka_unit_test(ends_of_processes_end_their_connections),
        cmocka_unit_test(deaths_are_told),
        cmocka_unit_test(a_process_withdraws_its_own_names),
        cmocka_unit_test(a_watcher_may_ask_again_at_once),
        cmocka_unit_test(what_pmix_has_comes_from_the_owner),
        cmocka_unit_test(cards_come_from_the_owner),
        cmocka_unit_test(files_come_from_the_owner),
        cmocka_unit_test(random_bytes),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, open_first, NULL);
}
