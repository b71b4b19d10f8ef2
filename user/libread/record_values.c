// The values in a record, for the tools that print it: see lib/records.h.

#include "lib/records.h"
#include "lib/string.h"

u64 sysinfo_field_number(const struct sysinfo_field *f, const void *record)
{
    const u8 *at = (const u8 *)record + f->offset;
    u32 small;
    u64 large;

    switch (f->kind) {
    case SYSINFO_FIELD_U32:
        memcpy(&small, at, sizeof(small));
        return small;
    case SYSINFO_FIELD_S32:
        memcpy(&small, at, sizeof(small));
        return (u64)(s64)(s32)small;
    case SYSINFO_FIELD_U64:
    case SYSINFO_FIELD_S64:
        memcpy(&large, at, sizeof(large));
        return large;
    default:
        return 0;
    }
}

size_t sysinfo_field_length(const struct sysinfo_field *f, const void *record)
{
    if (f->kind != SYSINFO_FIELD_TEXT)
        return 0;
    return strnlen((const char *)record + f->offset, f->size);
}

const char *sysinfo_state_name(u32 state)
{
#define STATE(upper, lower) [SYSINFO_##upper] = #lower,
    static const char *const names[] = { SYSINFO_STATES(STATE) };
    return state < ARRAY_SIZE(names) && names[state] ? names[state] : "?";
}
