// The fixed ACPI description table, and \_S5 for powering off: the one object
// of the DSDT that is needed, found without an AML interpreter.
#include "arch/i386/acpi/fadt.h"
#include "kernel/base/log.h"
#include "lib/string.h"

// AML (ACPI 6.4, 20.2).
#define AML_ZERO 0x00
#define AML_ONE 0x01
#define AML_BYTE 0x0a
#define AML_WORD 0x0b
#define AML_PACKAGE 0x12

struct fadt fadt;
struct sleep_type s5;

static bool read_integer(const u8 **p, const u8 *end, u8 *value)
{
    u32 left = (u32)(end - *p);
    if (left >= 1 && (**p == AML_ZERO || **p == AML_ONE)) {
        *value = *(*p)++;
        return true;
    }
    u32 size = left >= 1 && **p == AML_BYTE   ? 2
               : left >= 1 && **p == AML_WORD ? 3
                                              : 0;
    if (!size || left < size)
        return false;
    *value = (*p)[1];
    *p += size;
    return true;
}

// At `p`: PackageOp, PkgLength, NumElements, then the two sleep types.
static bool read_package(const u8 *p, const u8 *end)
{
    if (end - p < 3 || *p++ != AML_PACKAGE)
        return false;
    u32 length_bytes = 1 + (*p >> 6);
    if ((u32)(end - p) < length_bytes + 1)
        return false;
    p += length_bytes;
    u8 elements = *p++;
    struct sleep_type type = { .known = true };
    if (elements < 1 || !read_integer(&p, end, &type.a))
        return false;
    type.b = type.a;
    if (elements >= 2 && !read_integer(&p, end, &type.b))
        return false;
    s5 = type;
    return true;
}

static void find_s5(const struct acpi_header *table)
{
    const u8 *p = (const u8 *)(table + 1);
    const u8 *end = (const u8 *)table + table->length;
    for (; !s5.known && end - p > 4; p++) {
        if (!memcmp(p, "_S5_", 4))
            read_package(p + 4, end);
    }
}

void ssdt_read(const struct acpi_header *table)
{
    find_s5(table);
}

static bool covers(const struct acpi_header *t, size_t end)
{
    return t->length >= end;
}
#define HAS(t, field) \
    covers(t, offsetof(struct fadt, field) + sizeof(fadt.field))

void fadt_read(const struct acpi_header *table)
{
    memset(&fadt, 0, sizeof(fadt));
    memcpy(&fadt, table, MIN(table->length, sizeof(fadt)));
    if (!HAS(table, pm1_control_length)) {
        log_printf("acpi: the FADT is too short\n");
        memset(&fadt, 0, sizeof(fadt));
        return;
    }
    acpi_info.sci = fadt.sci;
    acpi_info.century = fadt.century;
    acpi_info.pm_timer_port = (u16)fadt.pm_timer;
    paddr_t dsdt = fadt.x_dsdt ? fadt.x_dsdt : fadt.dsdt;
    const struct acpi_header *t = dsdt ? acpi_table(dsdt) : NULL;
    if (t)
        find_s5(t);
}
