// Record types of the sysinfo tree: see lib/records.h.

#include "lib/records.h"

#define KIND_U32 SYSINFO_FIELD_U32
#define KIND_S32 SYSINFO_FIELD_S32
#define KIND_U64 SYSINFO_FIELD_U64
#define KIND_S64 SYSINFO_FIELD_S64
#define KIND_TEXT12 SYSINFO_FIELD_TEXT
#define KIND_TEXT16 SYSINFO_FIELD_TEXT
#define KIND_TEXT24 SYSINFO_FIELD_TEXT
#define KIND_TEXT32 SYSINFO_FIELD_TEXT
#define KIND_TEXT40 SYSINFO_FIELD_TEXT
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

const char *sysinfo_unit_name(u32 unit)
{
    static const char *const names[SYSINFO_UNITS] = {
        [SYSINFO_COUNT] = "",          [SYSINFO_ID] = "id",
        [SYSINFO_BYTES] = "bytes",     [SYSINFO_CYCLES] = "cycles",
        [SYSINFO_NS] = "ns",           [SYSINFO_SECONDS] = "s",
        [SYSINFO_HZ] = "Hz",           [SYSINFO_FIXED16] = "16.16",
        [SYSINFO_FLAG] = "flag",       [SYSINFO_STATE] = "state",
        [SYSINFO_NAME] = "name",       [SYSINFO_TICKS] = "ticks",
        [SYSINFO_ADDRESS] = "address",
    };
    return unit < ARRAY_SIZE(names) && names[unit] ? names[unit] : "?";
}
