/* layer.c - the life of this layer: its messages, and its state. */
#include "base/var.h"
#include "pt2pt/api.h"
#include "pt2pt/call_log.h"
#include "pt2pt/check.h"
#include "pt2pt/closing.h"
#include "pt2pt/contexts.h"
#include "pt2pt/deliver.h"
#include "pt2pt/doubt.h"
#include "pt2pt/helper.h"
#include "pt2pt/lanes.h"
#include "pt2pt/limits.h"
#include "pt2pt/lost.h"
#include "pt2pt/protocol.h"
#include "pt2pt/rndv/ahead.h"
#include "pt2pt/rndv/ready.h"
#include "pt2pt/share.h"
#include "pt2pt/wait_policy.h"
#include "transport/wire_lock.h"

static void peer_lost(struct peer *p, int code)
{
    (void)code; /* who asks later is told TERN_ERR_PEER, whatever broke the way, and the words */
    pt_lose(p);
}

static const struct tp_am messages[] = {
    {AM_CTS, "clear to send", pt_on_cts, NULL, false, sizeof(struct pt_cts)},
    {AM_FRAG, "fragment", pt_on_frag, pt_sink_frag, false, 0},
    {AM_ACK, "acknowledgement", pt_on_ack, NULL, false, 0},
    {AM_CREDIT, "credit", pt_on_credit, NULL, false, 0},
    {AM_CANCEL, "cancel", pt_on_cancel, NULL, false, 0},
    {AM_CANCELLED, "cancelled", pt_on_cancelled, NULL, false, 0},
    {AM_ASK, "are you over", pt_on_ask, NULL, true, 0},
    {AM_OVER, "over", pt_on_over, NULL, false, 0},
    {AM_CALL, "collective call", pt_on_call, NULL, true, sizeof(struct wire_call)},
    {AM_CLASH, "collective clash", pt_on_clash, NULL, false, sizeof(struct wire_clash)},
    {AM_CLOSING, "closing", pt_on_closing, NULL, false, 0},
    {AM_READY, "receive that is ready", pt_on_ready, NULL, false, 0},
    {AM_AHEAD, "data that nobody has asked for", pt_on_ahead, pt_sink_ahead, false, 0},
    {AM_PART, "part of a long message", pt_on_part, NULL, false, sizeof(struct pt_long)},
};

int pt_register(void)
{
    int rc = tp_am_register(messages, ARRAY_LEN(messages));
    return rc ? rc : pt_check_register();
}

void pt_unregister(void)
{
    tp_am_unregister(messages, ARRAY_LEN(messages));
    pt_check_unregister();
}

/* Those that concern the process: steps of the first lane. */
static void (*const steps[])(struct lane *) = {lost_open_process, doubt_open_process, closing_open};

int pt_open(bool threaded)
{
    background_open();
    pt_credit_open();
    limits_open();
    ready_open();
    deliver_open();
    int rc = lanes_open(threaded);
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) steps[i](lanes_first());
    if (!rc) rc = match_open();
    if (rc) return rc;
    wait_open(threaded);
    tp_lost = peer_lost;
    tp_left = pt_leave;
    peer_forgotten = closing_forget;
    peer_connected = wait_meets;
    rc = pt_check_open();
    if (!rc) rc = contexts_open();
    if (!rc && threaded) rc = peer_short_prepare();
    if (!rc && threaded) share_wires();
    return rc;
}

void pt_close(void)
{
    helper_close();
    contexts_close();
    closing_close();
    lost_close_process();
    lanes_close();
    deliver_close();
    pt_check_close();
    ready_close();
    ahead_close();
    pt_lost_close();
    tp_lost = NULL;
    tp_left = NULL;
    peer_forgotten = NULL;
    peer_connected = NULL;
}

static bool is_drained(void *lane)
{
    struct lane *l = lane;
    return progress_drained(&l->steps) && (l != lanes_first() || wires_drained());
}

/* True: it had to be waited for, and the others may have something to do since. */
static bool drain(struct lane *l)
{
    lane_enter(l);
    bool lasts = !is_drained(l);
    if (lasts) lane_wait(l, is_drained, l, NULL);
    lane_leave(l);
    return lasts;
}

/* Without a limit of time: who has what is to be sent may compute for hours, and who is dead is found out (lost.h). */
void pt_drain(void)
{
    struct lane *l;
    for (bool again = true; again;) {
        again = false;
        for (uint32_t i = 0; (l = lanes_at(i)); i++) again |= drain(l);
    }
}
