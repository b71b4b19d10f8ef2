// The record types of <strobe/sysinfo.h> as tables, for printers.
//
// Pure; any context.
#pragma once

#include <strobe/sysinfo.h>

#include "lib/types.h"

enum sysinfo_field_kind {
    SYSINFO_FIELD_U32,
    SYSINFO_FIELD_S32,
    SYSINFO_FIELD_U64,
    SYSINFO_FIELD_S64,
    SYSINFO_FIELD_TEXT,
};

struct sysinfo_field {
    const char *name, *meaning;
    u8 kind; // enum sysinfo_field_kind
    u8 unit; // enum sysinfo_unit
    u16 offset, size;
};

struct sysinfo_record_type {
    const char *name;
    u32 size;
    u32 field_count;
    const struct sysinfo_field *fields;
};

// NULL: there is no such record type.
const struct sysinfo_record_type *sysinfo_record_type(u32 record);
// A numeric field of a record, as 64 bits; 0 for a text field.
u64 sysinfo_field_number(const struct sysinfo_field *f, const void *record);
// The length of a text field up to the NUL; its characters are at the field's
// offset.
size_t sysinfo_field_length(const struct sysinfo_field *f, const void *record);

const char *sysinfo_unit_name(u32 unit);   // "" for plain numbers, "?" for an
const char *sysinfo_state_name(u32 state); // unknown one, here too
