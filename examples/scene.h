/*
 * scene.h - a room without walls: balls of paint, metal and glass under a lamp and the sky, and the light between them.
 */
#ifndef EXAMPLES_SCENE_H
#define EXAMPLES_SCENE_H

/* Makes the objects; before the first pixel. */
void scene_open(void);

/* The pixel (x, y) of a picture of width x height, 0 0 being the upper left, as the mean of so many paths of light. It depends on
 * these numbers only: no state, no clock, no library function that may differ between processors. */
void scene_pixel(long x, long y, long width, long height, long samples, unsigned char rgb[3]);

#endif
