/*
 * dsa.h - the engine that is Intel's Data Streaming Accelerator, by the queues that its administrator has opened to users (the kernel's
 * idxd driver, "type" user).
 *
 *     /sys/bus/dsa/devices/wq0.0/     type, state, mode, size, max_transfer_size
 *     /dev/dsa/wq0.0                  its portal: a page that takes descriptors of 64 bytes
 *
 *     push     writes a descriptor into the ring
 *     issue    hands it to the portal: MOVDIR64B (a dedicated queue), ENQCMD (a shared one), or write(2) where the
 *              kernel gives no portal
 *     device   copies, and writes a completion record
 *     finished counts the records in the order of push
 *
 * The device uses the page tables of the process: memory need not be pinned, and munmap, mremap and new mappings are as for any
 * thread. Where a page is not there it stops, and says how far it came: the processor copies the rest, and so it does whatever else
 * a record reports.
 *
 * Not in a child of fork: the queue knows the address space that opened it. The portal is not inherited.
 */
#ifndef TERN_COPY_DSA_H
#define TERN_COPY_DSA_H

#include "copy/copy.h"

extern const struct copy_ops copy_dsa_ops;

/* For tests: where the folders of the queues and their devices are, in place of those above; NULL: there. */
void copy_dsa_at(const char *queues, const char *devices);

/* How descriptors are handed over: "MOVDIR64B", "ENQCMD" or "write". */
const char *copy_dsa_way(const void *state);

/* How many pieces the processor has copied, wholly or in part, in the place of the device. */
uint64_t copy_dsa_by_processor(const void *state);

#endif
