// Names of trace points, generated from points.def.
#include "points.h"

#include <stdlib.h>
#include <string.h>

#define NAME_MAX_BYTES 32u
#define NEAR_MAX 5u

#define U8(name) " " #name ":8"
#define U16(name) " " #name ":16"
#define U32(name) " " #name ":32"
#define U64(name) " " #name ":64"
static const struct {
    const char *group, *name, *fields, *when;
} points[] = {
#define POINT(group, name, fields, when) \
    { #group, #group "/" #name, #group "/" #name fields "\n", when },
#include <strobe/points.def>
#undef POINT
};
#undef U8
#undef U16
#undef U32
#undef U64

const char *trace_point_name(uint32_t type)
{
    if (type < TRACE_POINTS)
        return points[type].name;
    return type == TRACE_R_LOST    ? "LOST"
           : type == TRACE_R_ENTRY ? "function/entry"
           : type == TRACE_R_EXIT  ? "function/exit"
           : type == TRACE_R_CALL  ? "function/call"
                                   : "?";
}

const char *trace_point_when(uint32_t point)
{
    return points[point].when;
}

const char *trace_point_fields(uint32_t point)
{
    return points[point].fields;
}

bool trace_point_field(const char **at, struct trace_field *f)
{
    if (**at != ' ')
        return false;
    const char *colon = strchr(++*at, ':');
    char *end;
    *f = (struct trace_field){
        .name = *at,
        .length = (size_t)(colon - *at),
        .bits = (uint32_t)strtoul(colon + 1, &end, 10),
    };
    *at = end;
    return true;
}

const char *trace_type_fields(uint32_t type)
{
    return type < TRACE_POINTS     ? strchr(points[type].fields, ' ')
           : type == TRACE_R_ENTRY ? " function:32 mark:32\n"
           : type == TRACE_R_EXIT  ? " function:32 cycles:64\n"
           : type == TRACE_R_CALL  ? " function:32 caller:32\n"
                                   : NULL;
}

uint32_t trace_fields_bytes(const char *fields)
{
    struct trace_field f;
    uint32_t bytes = 0;

    while (trace_point_field(&fields, &f))
        bytes += f.bits / 8;
    return bytes;
}

bool trace_field_is_address(const struct trace_field *f)
{
    static const char *const names[] = { "address", "pc",       "lock", "flow",
                                         "caller",  "function", "mark" };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (f->length == strlen(names[i]) &&
            memcmp(f->name, names[i], f->length) == 0)
            return f->bits == 32;
    }
    return false;
}

bool trace_points_are(const char *text, size_t size)
{
    for (uint32_t i = 0; i < TRACE_POINTS; i++) {
        size_t n = strlen(points[i].fields);
        if (size < n || memcmp(text, points[i].fields, n) != 0)
            return false;
        text += n;
        size -= n;
    }
    return size == 0;
}

// --- choice -----------------------------------------------------------------

static bool is_named(uint32_t point, const char *pattern)
{
    const char *slash = strchr(pattern, '/');
    size_t group = slash ? (size_t)(slash - pattern) : strlen(pattern);

    if (strcmp(pattern, points[point].name) == 0)
        return true;
    if (point == TRACE_sched_pmc) // it takes counters
        return false;
    if (strcmp(pattern, "*") == 0)
        return true;
    return (!slash || strcmp(slash, "/*") == 0) &&
           strlen(points[point].group) == group &&
           memcmp(points[point].group, pattern, group) == 0;
}

uint32_t trace_points_named(const char *pattern)
{
    uint32_t bits = 0;

    for (uint32_t i = 0; i < TRACE_POINTS; i++)
        bits |= (uint32_t)is_named(i, pattern) << i;
    return bits;
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

// The Levenshtein distance: characters inserted, removed or replaced. Only the
// first NAME_MAX_BYTES count.
static uint32_t distance(const char *a, const char *b)
{
    uint32_t row[NAME_MAX_BYTES + 1];
    uint32_t an = least((uint32_t)strlen(a), NAME_MAX_BYTES);
    uint32_t bn = least((uint32_t)strlen(b), NAME_MAX_BYTES);

    for (uint32_t j = 0; j <= bn; j++)
        row[j] = j;
    for (uint32_t i = 1; i <= an; i++) {
        uint32_t diagonal = row[0];
        row[0] = i;
        for (uint32_t j = 1; j <= bn; j++) {
            uint32_t above = row[j];
            row[j] = least(least(above, row[j - 1]) + 1,
                           diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[bn];
}

// How far a point's name is from the pattern: a name without its group counts,
// too, and a part of the name is near.
static uint32_t farness(uint32_t point, const char *pattern)
{
    const char *name = points[point].name, *slash = strchr(pattern, '/');
    const char *own = strchr(name, '/') + 1;
    uint32_t far = least(distance(name, pattern), distance(own, pattern));

    if (slash && slash[1])
        far = least(far, distance(own, slash + 1) + 1);
    return strstr(name, pattern) ? least(far, 1) : far;
}

void trace_points_print_near(const char *pattern, FILE *out)
{
    bool done[TRACE_POINTS] = { false };

    fputs("Near are:", out);
    for (uint32_t n = 0; n < NEAR_MAX; n++) {
        uint32_t best = TRACE_POINTS;
        for (uint32_t i = 0; i < TRACE_POINTS; i++) {
            if (!done[i] && (best == TRACE_POINTS ||
                             farness(i, pattern) < farness(best, pattern)))
                best = i;
        }
        if (best == TRACE_POINTS || (n && farness(best, pattern) > 4))
            break;
        done[best] = true;
        fprintf(out, "%s %s", n ? "," : "", points[best].name);
    }
    fputs(" (trace list)\n", out);
}
