// Record types of the sysinfo tree: see lib/records.h.

#include "lib/records.h"

#include "lib/string.h"

#define KIND_U32 SYSINFO_FIELD_U32
#define KIND_S32 SYSINFO_FIELD_S32
#define KIND_U64 SYSINFO_FIELD_U64
#define KIND_S64 SYSINFO_FIELD_S64
#define KIND_TEXT12 SYSINFO_FIELD_TEXT
#define KIND_TEXT16 SYSINFO_FIELD_TEXT
#define KIND_TEXT24 SYSINFO_FIELD_TEXT
#define KIND_TEXT32 SYSINFO_FIELD_TEXT
#define KIND_TEXT64 SYSINFO_FIELD_TEXT

#define FIELD(record, type, field, what, text)            \
    { .name = #field,                                     \
      .meaning = text,                                    \
      .kind = KIND_##type,                                \
      .unit = SYSINFO_##what,                             \
      .offset = offsetof(struct sysinfo_##record, field), \
      .size = sizeof(((struct sysinfo_##record *)0)->field) },

#define FIELDS(upper, lower)                               \
    static const struct sysinfo_field lower##_fields[] = { \
        SYSINFO_##upper##_FIELDS(FIELD, lower)             \
    };
SYSINFO_RECORDS(FIELDS)

#define TYPE(upper, lower)                                               \
    [SYSINFO_RECORD_##upper] = { #lower, sizeof(struct sysinfo_##lower), \
                                 ARRAY_SIZE(lower##_fields), lower##_fields },
static const struct sysinfo_record_type types[] = { SYSINFO_RECORDS(TYPE) };

const struct sysinfo_record_type *sysinfo_record_type(u32 record)
{
    if (record == SYSINFO_RECORD_NONE || record >= ARRAY_SIZE(types))
        return NULL;
    return &types[record];
}

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

static const char *name_in(const char *const *names, u32 count, u32 index)
{
    return index < count && names[index] ? names[index] : "?";
}

const char *sysinfo_kind_name(u32 kind)
{
    static const char *const names[] = {
        [SYSINFO_SUBTREE] = "subtree",
        [SYSINFO_VALUE] = "value",
        [SYSINFO_DATA] = "data",
        [SYSINFO_TEXT] = "text",
    };
    return name_in(names, ARRAY_SIZE(names), kind);
}

const char *sysinfo_unit_name(u32 unit)
{
    static const char *const names[SYSINFO_UNITS] = {
        [SYSINFO_COUNT] = "",      [SYSINFO_ID] = "id",
        [SYSINFO_BYTES] = "bytes", [SYSINFO_CYCLES] = "cycles",
        [SYSINFO_NS] = "ns",       [SYSINFO_SECONDS] = "s",
        [SYSINFO_HZ] = "Hz",       [SYSINFO_FIXED16] = "16.16",
        [SYSINFO_FLAG] = "flag",   [SYSINFO_STATE] = "state",
        [SYSINFO_NAME] = "name",
    };
    return name_in(names, ARRAY_SIZE(names), unit);
}

const char *sysinfo_state_name(u32 state)
{
#define STATE(upper, lower) [SYSINFO_##upper] = #lower,
    static const char *const names[] = { SYSINFO_STATES(STATE) };
    return name_in(names, ARRAY_SIZE(names), state);
}
