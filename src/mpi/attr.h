/*
 * attr.h - attributes in the life of the objects that have them: the other chapters
 * call these where an object is duplicated or freed.
 *
 * Results: 0, a negative code with words, or the positive code that a user's callback
 * returned; report_attr hands either to the error handler.
 */
#ifndef TERN_MPI_ATTR_H
#define TERN_MPI_ATTR_H

struct comm;
struct type;
struct win;

int comm_attrs_copy(struct comm *from, struct comm *to);
int comm_attrs_delete(struct comm *);
int type_attrs_copy(struct type *from, struct type *to);
int type_attrs_delete(struct type *);
int win_attrs_delete(struct win *);

/* Values of communicators that the user never freed are forgotten with them. */
void attrs_open(void);
void attrs_close(void); /* after comm_close */

int report_attr(const void *on, const char *call, int rc);

#endif
