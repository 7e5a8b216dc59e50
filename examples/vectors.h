/*
 * vectors.h - points, directions and colours of the examples that draw: three numbers each.
 */
#ifndef EXAMPLES_VECTORS_H
#define EXAMPLES_VECTORS_H

#include <math.h>

struct vec {
    double x, y, z;
};

static inline struct vec vec(double x, double y, double z) { return (struct vec){x, y, z}; }
static inline struct vec add(struct vec a, struct vec b) { return vec(a.x + b.x, a.y + b.y, a.z + b.z); }
static inline struct vec sub(struct vec a, struct vec b) { return vec(a.x - b.x, a.y - b.y, a.z - b.z); }
static inline struct vec scale(struct vec a, double s) { return vec(a.x * s, a.y * s, a.z * s); }
static inline struct vec times(struct vec a, struct vec b) { return vec(a.x * b.x, a.y * b.y, a.z * b.z); }
static inline double dot(struct vec a, struct vec b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
static inline struct vec unit(struct vec a) { return scale(a, 1 / sqrt(dot(a, a))); }
static inline struct vec mix(struct vec a, struct vec b, double t) { return add(scale(a, 1 - t), scale(b, t)); }
static inline struct vec cross(struct vec a, struct vec b)
{
    return vec(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}

/* Where the ray from o in direction d, of length 1, enters the ball or, from inside, leaves it, if that is farther than `least`; 0 if
 * nowhere. */
static inline double distance_to_ball(struct vec centre, double radius, struct vec o, struct vec d, double least)
{
    struct vec to = sub(centre, o);
    double along = dot(to, d), inside = along * along - dot(to, to) + radius * radius;
    if (inside < 0) return 0;
    double half = sqrt(inside);
    return along - half > least ? along - half : along + half > least ? along + half : 0;
}

#endif
