// Benchmark of symbol lookup: a million samples of a kernel with ten thousand
// functions, from the record stream to the table of functions. Runs on the
// host; see tools/bench/symbols.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "user/libprofile/views.h"

#define SAMPLES 1000000u
#define SYMBOLS 10000u
#define FUNCTION_BYTES 256u
#define CODE_BEGINS 0xc0100000u
#define LINE_ROOM 32
#define PIECE 4096u // samples added at once

#define RECORD_BYTES 40

static void *read_symbols(const char *path, size_t *size)
{
    if (strcmp(path, "[kernel]") != 0)
        return NULL;
    char *text = malloc(SYMBOLS * LINE_ROOM), *at = text;
    for (uint32_t i = 0; text != NULL && i < SYMBOLS; i++)
        at += sprintf(at, "%08x T function_%u\n",
                      CODE_BEGINS + i * FUNCTION_BYTES, i);
    *size = at - text;
    return text;
}

static uint32_t next_random(void)
{
    static uint32_t x = 1; // Numerical Recipes' generator, with a fixed seed
    x = x * 1664525 + 1013904223;
    return x >> 8;
}

static void fill(uint8_t *piece, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct sprofile_sample *s = (void *)(piece + i * RECORD_BYTES);
        memset(s, 0, RECORD_BYTES);
        s->head = (struct sprofile_record){ SPROFILE_R_SAMPLE, RECORD_BYTES, 0,
                                            SPROFILE_F_KERNEL, i };
        s->kernel_depth = 1;
        s->pc[0] =
            CODE_BEGINS + next_random() % (SYMBOLS * FUNCTION_BYTES) / 16 * 16;
    }
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

int main(void)
{
    static _Alignas(8) uint8_t piece[PIECE * RECORD_BYTES];
    static struct samples s;
    static const struct view_filter all;
    struct view v;
    double spent = 0;
    if (samples_init(&s, read_symbols) < 0)
        return 1;
    for (uint32_t left = SAMPLES; left > 0;) {
        uint32_t n = left < PIECE ? left : PIECE;
        fill(piece, n);
        double start = seconds();
        samples_add_stream(&s, piece, n * RECORD_BYTES);
        spent += seconds() - start;
        left -= n;
    }
    double start = seconds();
    if (view_make(&v, &s, BY_SYMBOL, &all) < 0)
        return 1;
    spent += seconds() - start;
    printf("%llu samples, %u functions hit, %llu without a symbol: %.3f s\n",
           (unsigned long long)v.samples, v.count,
           (unsigned long long)v.unknown, spent);
    return v.samples == SAMPLES && v.unknown == 0 ? 0 : 1;
}
