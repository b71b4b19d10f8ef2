// Descriptions of sensors: the types of events and their fields, from a text
// that its owner wrote and that may be anything.
#include "lib/string.h"
#include "lib/types.h"
#include "user/libread/sensor_read.h"

static const char *line_end(const char *at)
{
    while (*at && *at != '\n')
        at++;
    return at;
}

static const char *next_line(const char *at)
{
    at = line_end(at);
    return *at ? at + 1 : at;
}

static bool in_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
}

// Copies a name of 1 to SENSOR_FIELD_NAME - 1 characters; returns its end, or
// NULL.
static const char *take_name(const char *at, char *name)
{
    u32 n = 0;
    for (; in_name(at[n]); n++) {
        if (n == SENSOR_FIELD_NAME - 1)
            return NULL;
        name[n] = at[n];
    }
    name[n] = '\0';
    return n ? at + n : NULL;
}

static bool take_number(const char *at, u32 *number)
{
    const char *end = line_end(at);
    u32 value = 0;
    if (at == end)
        return false;
    for (; at < end; at++) {
        if (*at < '0' || *at > '9' || value > 65535)
            return false;
        value = value * 10 + (u32)(*at - '0');
    }
    *number = value;
    return true;
}

const char *sensor_find_type(const char *text, uint32_t type, char *name)
{
    static const char mark[] = "#type ";
    for (; *text; text = next_line(text)) {
        u32 number;
        if (strncmp(text, mark, sizeof(mark) - 1) != 0)
            continue;
        const char *end = take_name(text + sizeof(mark) - 1, name);
        if (end && *end == ' ' && take_number(end + 1, &number) &&
            number == type)
            return next_line(text);
    }
    return NULL;
}

bool sensor_next_field(const char **at, struct sensor_field *out)
{
    static const struct {
        char name[4];
        u32 bytes;
        bool is_signed;
    } kinds[] = {
        { "u8", 1, false },  { "u16", 2, false }, { "u32", 4, false },
        { "u64", 8, false }, { "s32", 4, true },  { "s64", 8, true },
    };
    const char *kind = take_name(*at, out->name);
    if (!kind || kind[0] != ',' || kind[1] != ' ')
        return false;
    kind += 2;
    for (u32 i = 0; i < ARRAY_SIZE(kinds); i++) {
        u32 length = (u32)strlen(kinds[i].name);
        if (strncmp(kind, kinds[i].name, length) != 0 ||
            kind + length != line_end(kind))
            continue;
        out->bytes = kinds[i].bytes;
        out->is_signed = kinds[i].is_signed;
        *at = next_line(kind);
        return true;
    }
    return false;
}

uint64_t sensor_field_value(const struct sensor_field *f, const void *bytes)
{
    u64 value = 0;
    memcpy(&value, bytes, f->bytes); // little-endian
    if (f->is_signed && f->bytes == 4)
        return (u64)(s64)(s32)(u32)value;
    return value;
}
