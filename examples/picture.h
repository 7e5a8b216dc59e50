/*
 * picture.h - writes a picture of width x height pixels, 3 bytes each (red, green, blue), top row first.
 *
 * The format follows the file's name: .png, else PPM (the plain "P6"). The PNG is written without a
 * library: its data are "stored" deflate blocks, that is not compressed, with the two check sums that the
 * format asks for. Any viewer reads it; it is as large as the PPM.
 */
#ifndef EXAMPLES_PICTURE_H
#define EXAMPLES_PICTURE_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A PNG file being written, with the sums that run along: crc over a chunk, adler (two halves) over all pixels. */
struct png {
    FILE *file;
    uint32_t crc, adler_low, adler_high;
};

static inline void png_bytes(struct png *p, const void *data, size_t n)
{
    const unsigned char *byte = data;
    for (size_t i = 0; i < n; i++) {
        p->crc ^= byte[i];
        for (int bit = 0; bit < 8; bit++) p->crc = p->crc >> 1 ^ (p->crc & 1 ? 0xedb88320u : 0);
    }
    fwrite(data, 1, n, p->file);
}

static inline void png_pixels(struct png *p, const void *data, size_t n)
{
    const unsigned char *byte = data;
    for (size_t i = 0; i < n; i++) {
        p->adler_low = (p->adler_low + byte[i]) % 65521;
        p->adler_high = (p->adler_high + p->adler_low) % 65521;
    }
    png_bytes(p, data, n);
}

static inline void png_number(struct png *p, uint32_t x)
{
    png_bytes(p, (unsigned char[]){x >> 24, x >> 16 & 255, x >> 8 & 255, x & 255}, 4);
}

/* A chunk is: length of the content, name, content, CRC of name and content. */
static inline void png_chunk_start(struct png *p, const char *name, size_t length)
{
    png_number(p, (uint32_t)length);
    p->crc = 0xffffffffu;
    png_bytes(p, name, 4);
}

static inline void png_chunk_end(struct png *p) { png_number(p, ~p->crc); }

/* One stored block for each row: a byte that tells whether it is the last, its length twice (little endian, the
 * second time inverted), the row's filter type (0, none) and the pixels. */
static inline void png_row(struct png *p, const unsigned char *pixels, size_t n, bool last)
{
    size_t length = n + 1;
    png_bytes(p, (unsigned char[]){last, length & 255, length >> 8, ~length & 255, (~length >> 8) & 255}, 5);
    png_pixels(p, "", 1);
    png_pixels(p, pixels, n);
}

static inline void png_write(FILE *file, int width, int height, const unsigned char *pixels)
{
    struct png p = {.file = file, .adler_low = 1};
    size_t row = 3 * (size_t)width, h = (size_t)height;
    fwrite("\x89PNG\r\n\x1a\n", 1, 8, file);
    png_chunk_start(&p, "IHDR", 13);
    png_number(&p, (uint32_t)width);
    png_number(&p, (uint32_t)height);
    png_bytes(&p, "\x08\x02\0\0", 5); /* 8 bits, red green blue, the only compression, filters, not interlaced */
    png_chunk_end(&p);
    png_chunk_start(&p, "IDAT", 2 + h * (6 + row) + 4);
    png_bytes(&p, "\x78\x01", 2);
    for (size_t y = 0; y < h; y++) png_row(&p, pixels + y * row, row, y + 1 == h);
    png_number(&p, p.adler_high << 16 | p.adler_low);
    png_chunk_end(&p);
    png_chunk_start(&p, "IEND", 0);
    png_chunk_end(&p);
}

static inline bool picture_write_to(FILE *file, bool png, int width, int height, const unsigned char *pixels)
{
    if (png) {
        png_write(file, width, height, pixels);
    } else {
        fprintf(file, "P6\n%d %d\n255\n", width, height);
        fwrite(pixels, 3, (size_t)width * (size_t)height, file);
    }
    bool bad = ferror(file);
    return fclose(file) == 0 && !bad;
}

/* Is there something that is no file, such as a pipe or /dev/null? Nothing takes its place. */
static inline bool picture_is_device(const char *name)
{
    struct stat s;
    return !stat(name, &s) && !S_ISREG(s.st_mode);
}

/* Writes the file; false, with the reason in errno, when it cannot. What had the name before stays until the picture is whole.
 * A row of a PNG must be shorter than 65535 bytes. */
static inline bool picture_write(const char *name, int width, int height, const unsigned char *pixels)
{
    const char *dot = strrchr(name, '.');
    bool png = dot && strcmp(dot, ".png") == 0, device = picture_is_device(name), good = false;
    char *part = malloc(strlen(name) + sizeof ".part");
    if (!part) return false;
    sprintf(part, "%s%s", name, device ? "" : ".part");
    FILE *file = fopen(part, "wb");
    if (file) good = picture_write_to(file, png, width, height, pixels) && (device || !rename(part, name));
    if (file && !good && !device) {
        int why = errno;
        unlink(part);
        errno = why;
    }
    free(part);
    return good;
}

#endif
