#include "histogram.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define STARS 62
#define DIGITS_MIN 4

struct shape {
    uint32_t bin_size, row_bins, rows;
    uint64_t total, max; // ticks: sum of all rows, and maximum
    int digits;          // in an address
};

static uint64_t row_ticks(const struct prof_data *p, const struct shape *s,
                          uint32_t row)
{
    uint64_t sum = 0;
    uint32_t first = row * s->row_bins;

    for (uint32_t i = first; i < first + s->row_bins && i < p->bins_used; i++)
        sum += p->bins[i];
    return sum;
}

static int digits_of(uint32_t address)
{
    int digits = DIGITS_MIN;

    while (digits < 8 && address >> (4 * digits) != 0)
        digits++;
    return digits;
}

// All rows have the same number of bins, except that the last one may have
// fewer. Therefore the number of rows may be lower than requested.
static void measure(struct shape *s, const struct prof_data *p, uint32_t rows,
                    uint32_t origin)
{
    *s = (struct shape){ .bin_size = prof_bin_size(p),
                         .digits = digits_of(p->high - origin) };
    if (p->bins_used == 0)
        return;
    if (rows > p->bins_used)
        rows = p->bins_used;
    s->row_bins = (p->bins_used + rows - 1) / rows;
    s->rows = (p->bins_used + s->row_bins - 1) / s->row_bins;
    for (uint32_t i = 0; i < s->rows; i++) {
        uint64_t ticks = row_ticks(p, s, i);
        s->total += ticks;
        if (ticks > s->max)
            s->max = ticks;
    }
}

// part * units / whole, rounded to nearest; 0 if `whole` is 0. No overflow: the
// sum of 1024 bins of 32 bits is below 2^42.
static uint32_t share(uint64_t part, uint64_t whole, uint32_t units)
{
    return whole != 0 ? (uint32_t)((part * units + whole / 2) / whole) : 0;
}

// Prints the scale, from "0%" above the first star to the highest percentage
// above the last one.
static void print_scale(FILE *out, const struct shape *s)
{
    char highest[8];
    int length = snprintf(highest, sizeof(highest), "%" PRIu32 "%%",
                          share(s->max, s->total, 100));

    fprintf(out, "%*s0%%", 2 * s->digits + 10, "");
    for (int i = 2; i < STARS - length; i++)
        putc('.', out);
    fprintf(out, "%s\n", highest);
}

static void print_row(FILE *out, const struct prof_data *p,
                      const struct shape *s, uint32_t row, uint32_t origin)
{
    uint64_t ticks = row_ticks(p, s, row);
    uint32_t percent = share(ticks, s->total, 100);
    uint64_t start = p->low + (uint64_t)row * s->row_bins * s->bin_size;
    uint64_t end = start + (uint64_t)s->row_bins * s->bin_size - 1;

    if (end > p->high)
        end = p->high;
    // With 100%, the third digit replaces the space before the colon.
    fprintf(out, "%0*" PRIX32 "-%0*" PRIX32 " (%02" PRIu32 "%%)%s: ", s->digits,
            (uint32_t)start - origin, s->digits, (uint32_t)end - origin,
            percent, percent < 100 ? " " : "");
    for (uint32_t i = share(ticks, s->max, STARS); i > 0; i--)
        putc('*', out);
    putc('\n', out);
}

void histogram_print(FILE *out, const char *program, const struct prof_data *p,
                     uint32_t rows, uint32_t origin)
{
    struct shape s;

    measure(&s, p, rows, origin);
    fprintf(out, "%s\n", program);
    print_scale(out, &s);
    for (uint32_t i = 0; i < s.rows; i++)
        print_row(out, p, &s, i, origin);
}

// Rejects blanks and signs, which strtoul accepts.
static const char *parse_address(const char *text, uint32_t *out)
{
    char *end;

    if (!isxdigit((unsigned char)text[0]))
        return NULL;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 16);
    if (errno != 0 || value > UINT32_MAX)
        return NULL;
    *out = (uint32_t)value;
    return end;
}

bool histogram_parse_range(const char *text, uint32_t *start, uint32_t *end)
{
    const char *rest = parse_address(text, start);

    if (!rest || *rest != '-')
        return false;
    rest = parse_address(rest + 1, end);
    return rest != NULL && *rest == '\0' && *start < *end;
}
