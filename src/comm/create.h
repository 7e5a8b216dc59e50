/*
 * create.h - making communicators: what all members have to agree on (MPI-5.0
 * section 7.4). Collective over the parent, or over the group for comm_create_group.
 *
 * The only thing to agree on is the context id. It is made by rank 0 of the new
 * communicator (comm_fresh_ctx) and told to the others, so the cost does not depend
 * on how many communicators live, and disjoint creations need not know of each other.
 *
 * Threads: any, with different parents; as the standard wants of collective calls.
 */
#ifndef TERN_COMM_CREATE_H
#define TERN_COMM_CREATE_H

#include "obj/comm.h"
#include "obj/group.h"

struct request;
struct info;

/* All return 0 or a code with words; *out is NULL for processes that are not members. */
int comm_dup(struct comm *parent, struct info *hints, struct comm **out); /* hints (NULL: none) of the new one: those that are taken */
int comm_split(struct comm *parent, int color, int key, struct comm **out); /* color MPI_UNDEFINED: not a member */
/* `type`: MPI_UNDEFINED, or a MPI_COMM_TYPE_. `info` (may be NULL): what it guides; an unguided split names its level there. */
int comm_split_type(struct comm *parent, int type, int key, struct info *info, struct comm **out);
int comm_create(struct comm *parent, struct group *group, struct comm **out);
int comm_create_group(struct comm *parent, struct group *group, int tag, struct comm **out);

/* Without a parent: the members find each other by the tag (comm/meeting.h). Collective over the group. */
int comm_from_group(struct group *, const char *tag, struct errhandler *, struct comm **out);

/*
 * Intercommunicators (7.6). The leaders' ranks: in `local`, and in `peer`. What is said of the other group is significant at
 * the leader only; if that is nothing (NULL), which the leader reports, the others fail as well, rather than wait. Groups with
 * processes of several jobs are made known to each other by `of_jobs` (dpm_inter_create), which has the same arguments.
 */
typedef int (*comm_inter_fn)(struct comm *local, int local_leader, struct comm *peer, int remote_leader, int tag, struct comm **out);
int comm_inter_create(struct comm *local, int local_leader, struct comm *peer, int remote_leader, int tag, comm_inter_fn of_jobs,
                      struct comm **out);
int comm_inter_from_groups(struct group *local, int local_leader, struct group *remote, int remote_leader, const char *tag,
                           struct errhandler *, comm_inter_fn of_jobs, struct comm **out);
int comm_inter_merge(struct comm *inter, bool high, struct comm **out);

/*
 * A duplication that is started: comm_dup_reserve makes the object (which the caller may give attributes), which becomes a
 * communicator when the request is complete; if the duplication fails it is gone. made NULL: this process takes part for
 * the others only. comm_dup_start is called in the same order at all ranks as other collective calls; made is its own from
 * then on, also on failure.
 */
int comm_dup_reserve(struct comm *parent, struct comm **made_p);
int comm_dup_start(struct comm *parent, struct comm *made, struct request **req_p);

/* MPI_Comm_compare. */
int comm_compare(const struct comm *, const struct comm *);

#endif
