// hardware.acpi: the tables that were found at start-up, and what power-off
// and reset have taken from them. Small tables are printed in full.
#include "arch/i386/acpi/fadt.h"
#include "kernel/base/providers.h"
#include "kernel/mm/chain.h"
#include "lib/crc32.h"
#include "lib/string.h"

#define DUMP_MAX 1024u
#define LINE_BYTES 16u

static void dump(struct chain *out, const u8 *bytes, u32 size)
{
    for (u32 i = 0; i < size; i++) {
        if (i % LINE_BYTES == 0)
            chain_printf(out, "    %03x:", i);
        bool last = i % LINE_BYTES == LINE_BYTES - 1 || i + 1 == size;
        chain_printf(out, " %02x%s", bytes[i], last ? "\n" : "");
    }
}

// Firmware may have any bytes in its names.
static void put_name(struct chain *out, const char *name, u32 size)
{
    for (u32 i = 0; i < size; i++)
        chain_printf(out, "%c",
                     name[i] >= ' ' && name[i] <= '~' ? name[i] : '.');
}

static bool is_code(const struct acpi_header *t)
{
    return !memcmp(t->signature, "DSDT", 4) || !memcmp(t->signature, "SSDT", 4);
}

static void report_table(struct chain *out, const struct acpi_found *f)
{
    const struct acpi_header *t = f->table;
    if (!t) {
        chain_printf(out, "????  at %#llx: %s\n", f->base, f->problem);
        return;
    }
    put_name(out, t->signature, sizeof(t->signature));
    chain_printf(out, "  at %#llx, %u bytes, revision %u, OEM ", f->base,
                 t->length, t->revision);
    put_name(out, t->oem, sizeof(t->oem));
    chain_printf(out, " ");
    put_name(out, t->oem_table, sizeof(t->oem_table));
    chain_printf(out, ", checksum %02x, CRC-32 %08x\n", t->checksum,
                 crc32(0, t, t->length));
    if (t->length <= DUMP_MAX && !is_code(t))
        dump(out, (const u8 *)t, t->length);
}

static void report_register(struct chain *out, const char *what,
                            const struct acpi_register *r)
{
    char name[ACPI_REGISTER_NAME] = "none";
    if (r->bytes)
        acpi_register_name(r, name);
    chain_printf(out, "%s: %s\n", what, name);
}

static void report_power(struct chain *out)
{
    const struct power_registers *r = &power_registers;
    if (s5.known)
        chain_printf(out, "\\_S5: types %u and %u\n", s5.a, s5.b);
    else
        chain_printf(out, "\\_S5: not found\n");
    report_register(out, "PM1a control", &r->pm1a);
    report_register(out, "PM1b control", &r->pm1b);
    report_register(out, "sleep control", &r->sleep_control);
    report_register(out, "reset", &r->reset);
    report_register(out, "power management timer", &r->timer);
}

void acpi_report(struct chain *out)
{
    if (!acpi_found_count) {
        chain_printf(out, "not there: no ACPI tables\n");
        return;
    }
    for (u32 i = 0; i < acpi_found_count; i++)
        report_table(out, &acpi_found[i]);
    report_power(out);
}
