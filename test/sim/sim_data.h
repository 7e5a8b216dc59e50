/* sim_data.h - the bytes of the simulator: elements with gaps, operators, the pieces of messages. */
#ifndef TERN_TEST_SIM_DATA_H
#define TERN_TEST_SIM_DATA_H

#include "sim.h"

/* The local work of the port (struct goal_port). */
int sim_copy(struct goal_frame *, const struct goal_buf *from, const struct goal_buf *to);
int sim_reduce(struct goal_frame *, const struct goal_buf *in, const struct goal_buf *inout);
int sim_reduce3(struct goal_frame *, const struct goal_buf *a, const struct goal_buf *b, const struct goal_buf *out);

/* How many bytes the pieces of an operation have. */
int64_t sim_op_len(const struct goal_op *);

/* Moves bytes between the pieces of an operation and a packed buffer; from: out of the pieces. */
void sim_move_pieces(const struct goal_frame *, const struct goal_op *, char *data, int64_t len, bool from);

/* Spoils the memory that an operation writes. Has nobody written there since? */
void sim_poison(struct goal_frame *, const struct goal_op *);
bool sim_still_poisoned(const struct goal_frame *, const struct goal_op *);

#endif
