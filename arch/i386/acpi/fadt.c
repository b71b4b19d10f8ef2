// The fixed ACPI description table, and \_S5 for powering off: the one object
// of the DSDT that is needed, found without an AML interpreter.
#include "arch/i386/acpi/fadt.h"
#include "kernel/base/log.h"
#include "lib/string.h"

struct fadt fadt;
struct sleep_type s5;
struct power_registers power_registers;

static void find_s5(const struct acpi_header *table)
{
    if (!s5.known)
        sleep_type_find((const u8 *)(table + 1), table->length - sizeof(*table),
                        &s5);
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

// Some registers have two descriptions: a generic address, since ACPI 2.0, and
// a port. `bytes` is the size of an access, whatever the table says.
static void open_either(struct acpi_register *r, const struct acpi_address *a,
                        u32 port, u8 bytes)
{
    struct acpi_address plain = { .space = ACPI_SPACE_IO, .address = port };
    struct acpi_address sized = *a;
    sized.access = 0;
    if (!acpi_register_open(r, &sized, bytes))
        acpi_register_open(r, &plain, bytes);
}

static void open_registers(void)
{
    struct power_registers *r = &power_registers;
    open_either(&r->pm1a, &fadt.x_pm1a_control, fadt.pm1a_control, sizeof(u16));
    open_either(&r->pm1b, &fadt.x_pm1b_control, fadt.pm1b_control, sizeof(u16));
    acpi_register_open(&r->sleep_control, &fadt.sleep_control, 1);
    acpi_register_open(&r->sleep_status, &fadt.sleep_status, 1);
    acpi_register_open(&r->reset, &fadt.reset, 1);
    // A clock is read in any context, PCI's configuration space is not.
    if (fadt.x_pm_timer.space == ACPI_SPACE_PCI)
        fadt.x_pm_timer.address = 0;
    open_either(&r->timer, &fadt.x_pm_timer, fadt.pm_timer, sizeof(u32));
}

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
    open_registers();
    paddr_t dsdt = fadt.x_dsdt ? fadt.x_dsdt : fadt.dsdt;
    const struct acpi_header *t = dsdt ? acpi_table(dsdt) : NULL;
    if (t)
        find_s5(t);
}
