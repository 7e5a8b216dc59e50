/*
 * dsa_model.h - a software model of the Data Streaming Accelerator: a folder that looks like sysfs, a device file, and a thread that
 * is the device. It takes descriptors from the portal (MOVDIR64B into a page that both have mapped), or from a pipe (write(2)), copies, out
 * of order if told so, and writes completion records.
 */
#ifndef TERN_TEST_DSA_MODEL_H
#define TERN_TEST_DSA_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dsa_model {
    /* of the queue; set before dsa_model_open */
    bool portal; /* a page, else a pipe */
    size_t size, most;
    const char *type, *state, *mode;
    uint64_t seed;
    unsigned fault_every; /* of so many copies one stops at a page that is not there: after some bytes, or none; 0: none does */
    unsigned bad_every;   /* ... is refused as a whole */
    unsigned dies_after;  /* so many copies, with some that it has taken left undone; 0: never */

    /* results */
    uint64_t copies, faults, bad, longest;
};

/* The model is at the places that copy_dsa_at is told. False: files cannot be made. One at a time. */
bool dsa_model_open(struct dsa_model *);
void dsa_model_close(struct dsa_model *);

void dsa_model_hide(struct dsa_model *); /* the device file goes */

#endif
