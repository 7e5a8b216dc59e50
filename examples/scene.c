/*
 * scene.c - see scene.h: a path tracer.
 *
 * A path of light is followed backwards, from the eye through a pixel to what it meets, and on from there: a mirror and
 * glass say where, a painted surface in a direction that is drawn at random (so that colours are cast from one thing on
 * the other). At each painted point, a point of the lamp is drawn as well, and what it sends there is added if nothing is
 * in between. A path that carries little goes on with some probability only, and carries more then.
 *
 * All random numbers of a path come from a sequence that begins with the numbers of its pixel and sample. Arithmetic is
 * + - * / and square root, whose results IEEE 754 fixes to the last bit: directions are drawn by rejection, where others
 * take sine and cosine. So every process that runs this program computes the same pixel.
 */
#include "scene.h"
#include "vectors.h"
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

enum { SMALL = 36, OBJECTS = 4 + SMALL, LAMP = 0, DEPTH = 12, SURE = 4 }; /* bounces at most; that all paths make */

static double largest(struct vec a) { return a.x > a.y ? (a.x > a.z ? a.x : a.z) : a.y > a.z ? a.y : a.z; }

/* ---- numbers at random ---- */

struct random {
    uint64_t state;
};

static uint64_t stir(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* In 0..1. */
static double draw(struct random *r)
{
    r->state += 0x9e3779b97f4a7c15u;
    return (double)(stir(r->state) >> 11) * 0x1p-53;
}

/* A point in a circle of radius 1. */
static void draw_in_circle(struct random *r, double *x, double *y)
{
    do {
        *x = 2 * draw(r) - 1;
        *y = 2 * draw(r) - 1;
    } while (*x * *x + *y * *y > 1 || (*x == 0 && *y == 0));
}

static struct vec draw_direction(struct random *r)
{
    struct vec v;
    double n;
    do {
        v.x = 2 * draw(r) - 1; /* one after the other: arguments may be evaluated in any order */
        v.y = 2 * draw(r) - 1;
        v.z = 2 * draw(r) - 1;
        n = dot(v, v);
    } while (n > 1 || n < 1e-12);
    return scale(v, 1 / sqrt(n));
}

/* ---- the objects: y is up, the floor is y = 0 ---- */

enum material { PAINT, GLAZE, METAL, GLASS, LIGHT };

struct ball {
    struct vec centre, colour; /* of a LIGHT: what it sends */
    double radius, rough;      /* of METAL: how far reflections are off */
    enum material material;
};

static struct ball ball[OBJECTS];

static bool is_free(int n, struct vec centre, double radius)
{
    for (int i = 1; i < n; i++) {
        struct vec d = sub(centre, ball[i].centre);
        double apart = radius + ball[i].radius + 0.03;
        if (dot(d, d) < apart * apart) return false;
    }
    return true;
}

static struct ball draw_ball(struct random *r, struct vec centre, double radius)
{
    static const enum material of[] = {PAINT, PAINT, GLAZE, GLAZE, GLAZE, METAL, METAL, GLASS};
    struct ball b = {.centre = centre, .radius = radius};
    b.material = of[(int)(draw(r) * 8)];
    b.rough = 0.25 * draw(r);
    double hue = 3 * draw(r), part = hue - (int)hue;
    double strong = 0.80 + 0.12 * draw(r), weak = 0.10 + 0.25 * draw(r);
    struct vec c[] = {vec(strong, weak, weak), vec(weak, strong, weak), vec(weak, weak, strong), vec(strong, weak, weak)};
    b.colour = mix(c[(int)hue], c[(int)hue + 1], part);
    if (b.material == METAL) b.colour = mix(b.colour, vec(0.9, 0.9, 0.9), 0.6);
    if (b.material == GLASS) b.colour = vec(0.98, 0.98, 0.98);
    return b;
}

/* Small balls lie where a spiral comes by and there is room: the golden angle's cosine and sine turn it. */
void scene_open(void)
{
    struct random r = {.state = 20};
    ball[LAMP] = (struct ball){.centre = {-4.2, 7.6, 3.6}, .radius = 1.3, .colour = {30, 26, 20}, .material = LIGHT};
    ball[1] = (struct ball){.centre = {0, 1.2, 0}, .radius = 1.2, .colour = {0.98, 0.98, 0.98}, .material = GLASS};
    ball[2] = (struct ball){.centre = {-2.7, 1.1, -0.9}, .radius = 1.1, .colour = {0.85, 0.22, 0.16}, .material = GLAZE};
    ball[3] = (struct ball){.centre = {2.7, 1.15, -0.7}, .radius = 1.15, .colour = {0.95, 0.93, 0.88}, .material = METAL};
    int n = OBJECTS - SMALL;
    double x = 1, z = 0;
    for (double k = 1; n < OBJECTS; k += 1) {
        const double c = -0.73736887807831963, s = 0.67549029426152396;
        double turned = x * c - z * s, away = 0.62 * sqrt(k), radius = 0.17 + 0.25 * draw(&r);
        z = x * s + z * c;
        x = turned;
        struct vec centre = vec(x * away, radius, z * away);
        if (is_free(n, centre, radius)) ball[n++] = draw_ball(&r, centre, radius);
    }
}

static struct vec sky(struct vec d)
{
    double up = d.y > 0 ? d.y : 0;
    return scale(mix(vec(1.0, 0.90, 0.78), vec(0.16, 0.38, 0.90), sqrt(up)), 0.5);
}

/* ---- what a ray meets ---- */

struct hit {
    struct vec point, normal, colour; /* the normal is outward */
    double distance, rough;
    enum material material;
    int object;
};

static double distance_to(const struct ball *b, struct vec o, struct vec d) { return distance_to_ball(b->centre, b->radius, o, d, 1e-5); }

/* Squares of two colours, which fade into their mean far away. */
static void meet_floor(struct hit *h)
{
    bool odd = ((long)floor(0.8 * h->point.x) + (long)floor(0.8 * h->point.z)) & 1;
    double far = h->distance < 40 ? h->distance / 40 : 1;
    h->normal = vec(0, 1, 0);
    h->colour = mix(odd ? vec(0.30, 0.31, 0.33) : vec(0.74, 0.71, 0.66), vec(0.52, 0.51, 0.50), far);
    h->material = GLAZE;
}

static bool find_hit(struct vec o, struct vec d, struct hit *h)
{
    h->object = -1;
    h->distance = d.y < 0 ? -o.y / d.y : 1e30;
    if (h->distance < 1e-5) h->distance = 1e30;
    for (int i = 0; i < OBJECTS; i++) {
        double t = distance_to(&ball[i], o, d);
        if (t <= 0 || t >= h->distance) continue;
        h->distance = t;
        h->object = i;
    }
    if (h->distance > 1e3) return false;
    h->point = add(o, scale(d, h->distance));
    if (h->object < 0) {
        meet_floor(h);
        return true;
    }
    const struct ball *b = &ball[h->object];
    h->normal = scale(sub(h->point, b->centre), 1 / b->radius);
    h->colour = b->colour;
    h->rough = b->rough;
    h->material = b->material;
    return true;
}

static bool is_dark(struct vec o, struct vec d, double distance)
{
    for (int i = 1; i < OBJECTS; i++) {
        double t = distance_to(&ball[i], o, d);
        if (t > 0 && t < distance) return true;
    }
    return false;
}

/* ---- light ---- */

/* What a painted point gets straight from the lamp, by one direction drawn in the cone under which the lamp is seen. */
static struct vec from_lamp(struct vec p, struct vec normal, struct random *r)
{
    const struct ball *lamp = &ball[LAMP];
    struct vec to = sub(lamp->centre, p), axis = unit(to);
    double narrow = sqrt(1 - lamp->radius * lamp->radius / dot(to, to)), x, y;
    draw_in_circle(r, &x, &y);
    double off = x * x + y * y, cosine = 1 - off * (1 - narrow), part = sqrt((1 - cosine * cosine) / off);
    struct vec side = unit(cross(axis, axis.x * axis.x > 0.5 ? vec(0, 1, 0) : vec(1, 0, 0))), other = cross(axis, side);
    struct vec d = add(scale(axis, cosine), add(scale(side, x * part), scale(other, y * part)));
    double facing = dot(d, normal), distance = distance_to(lamp, p, d);
    if (facing <= 0 || distance <= 0 || is_dark(p, d, distance)) return vec(0, 0, 0);
    return scale(lamp->colour, facing * 2 * (1 - narrow));
}

static struct vec mirrored(struct vec d, struct vec normal) { return sub(d, scale(normal, 2 * dot(d, normal))); }

/* Schlick's approximation: the part that is reflected at an angle with this cosine. */
static double reflected(double cosine, double straight)
{
    double a = 1 - cosine, a2 = a * a;
    return straight + (1 - straight) * a2 * a2 * a;
}

/* The new direction at glass, into it, out of it, or back. */
static struct vec through_glass(struct vec d, struct vec outward, struct random *r)
{
    bool enters = dot(d, outward) < 0;
    struct vec normal = enters ? outward : scale(outward, -1);
    double ratio = enters ? 1 / 1.5 : 1.5, cosine = -dot(d, normal), rest = 1 - ratio * ratio * (1 - cosine * cosine);
    if (rest <= 0) return mirrored(d, normal);
    double inner = sqrt(rest);
    if (draw(r) < reflected(enters ? cosine : inner, 0.04)) return mirrored(d, normal);
    return unit(add(scale(d, ratio), scale(normal, ratio * cosine - inner)));
}

/* A path on its way: what it has gathered, and what part of the light from here on comes to the eye. */
struct path {
    struct vec o, d, gathered, part;
    bool sees_lamp; /* if it meets the lamp next: from a painted point that was counted already */
};

/* At paint, under a glaze or not. */
static void go_on_from_paint(struct path *p, const struct hit *h, struct random *r)
{
    if (h->material == GLAZE && draw(r) < reflected(-dot(p->d, h->normal), 0.04)) {
        p->d = mirrored(p->d, h->normal);
        p->sees_lamp = true;
        return;
    }
    p->part = times(p->part, h->colour);
    p->gathered = add(p->gathered, times(p->part, from_lamp(p->o, h->normal, r)));
    p->d = unit(add(scale(h->normal, 1.000001), draw_direction(r)));
    p->sees_lamp = false;
}

static bool go_on_from_metal(struct path *p, const struct hit *h, struct random *r)
{
    p->d = unit(add(mirrored(p->d, h->normal), scale(draw_direction(r), h->rough)));
    p->part = times(p->part, h->colour);
    p->sees_lamp = true;
    return dot(p->d, h->normal) > 0;
}

/* One bounce; false: the path ends. */
static bool bounce(struct path *p, struct random *r)
{
    struct hit h;
    if (!find_hit(p->o, p->d, &h)) {
        p->gathered = add(p->gathered, times(p->part, sky(p->d)));
        return false;
    }
    if (h.material == LIGHT) {
        if (p->sees_lamp) p->gathered = add(p->gathered, times(p->part, h.colour));
        return false;
    }
    p->o = h.point;
    if (h.material == METAL) return go_on_from_metal(p, &h, r);
    if (h.material == GLASS) {
        p->d = through_glass(p->d, h.normal, r);
        p->part = times(p->part, h.colour);
        p->sees_lamp = true;
    } else {
        go_on_from_paint(p, &h, r);
    }
    return true;
}

static struct vec follow(struct vec o, struct vec d, struct random *r)
{
    struct path p = {.o = o, .d = d, .part = {1, 1, 1}, .sees_lamp = true};
    for (int depth = 0; depth < DEPTH && bounce(&p, r); depth++) {
        double chance = largest(p.part);
        if (depth < SURE || chance >= 1) continue;
        if (draw(r) >= chance) break;
        p.part = scale(p.part, 1 / chance);
    }
    return p.gathered;
}

/* ---- the picture ---- */

/* Dark light is darkened a little, bright light compressed into what a screen has; square root for gamma. */
static unsigned char byte_of(double x)
{
    double y = x * (1.9 * x + 0.05) / (x * (1.8 * x + 0.6) + 0.15);
    return (unsigned char)(255 * sqrt(y < 1 ? y : 1) + 0.5);
}

static double capped(double x) { return x < 24 ? x : 24; }

void scene_pixel(long x, long y, long width, long height, long samples, unsigned char rgb[3])
{
    const struct vec eye = vec(0.5, 3.0, 9.4), forward = unit(sub(vec(0, 0.75, 0), eye));
    const struct vec right = unit(cross(forward, vec(0, 1, 0))), up = cross(right, forward);
    double side = (double)(width < height ? width : height);
    struct vec sum = vec(0, 0, 0);
    for (long i = 0; i < samples; i++) {
        struct random r = {.state = stir(stir((uint64_t)y * (uint64_t)width + (uint64_t)x) + (uint64_t)i)};
        double sx = ((double)x + draw(&r) - 0.5 * (double)width) / side, sy = (0.5 * (double)height - (double)y - draw(&r)) / side;
        struct vec c = follow(eye, unit(add(forward, add(scale(right, 0.8 * sx), scale(up, 0.8 * sy)))), &r);
        sum = add(sum, vec(capped(c.x), capped(c.y), capped(c.z)));
    }
    rgb[0] = byte_of(sum.x / (double)samples);
    rgb[1] = byte_of(sum.y / (double)samples);
    rgb[2] = byte_of(sum.z / (double)samples);
}
