// The multiple APIC description table: CPUs, interrupt controllers, wiring
// (ACPI 6.4, 5.2.12).
#include "arch/i386/acpi/acpi.h"
#include "arch/i386/irq/controllers.h"
#include "kernel/base/log.h"
#include "lib/string.h"

enum {
    MADT_LAPIC = 0,
    MADT_IOAPIC = 1,
    MADT_OVERRIDE = 2,
    MADT_LAPIC_NMI = 4,
    MADT_LAPIC_ADDRESS = 5,
    MADT_X2APIC = 9,
    MADT_X2APIC_NMI = 10,
};

#define CPU_ENABLED 1u
#define CPU_ONLINE_CAPABLE 2u
#define BUS_ISA 0
#define ALL_CPUS 0xffu
#define ALL_X2APIC_CPUS 0xffffffffu
#define APIC_ID_MAX 0xfeu // of CPUs that are started: trampoline.S

struct madt {
    struct acpi_header header;
    u32 lapic, flags;
} PACKED;
_Static_assert(sizeof(struct madt) == 44, "ACPI 6.4, table 5.19");

struct entry {
    u8 type, length;
    union {
        struct {
            u8 uid, apic_id;
            u32 flags;
        } PACKED lapic;
        struct {
            u8 id, reserved;
            u32 address, gsi_base;
        } PACKED ioapic;
        struct {
            u8 bus, source;
            u32 gsi;
            u16 flags;
        } PACKED override;
        struct {
            u8 uid;
            u16 flags;
            u8 lint;
        } PACKED nmi;
        struct {
            u16 reserved;
            u64 address;
        } PACKED lapic_address;
        struct {
            u16 reserved;
            u32 apic_id, flags, uid;
        } PACKED x2apic;
        struct {
            u16 flags;
            u32 uid;
            u8 lint;
        } PACKED x2apic_nmi;
    };
} PACKED;
_Static_assert(sizeof(struct entry) == 16, "the longest, of an x2APIC");

// NMI entries identify CPUs by the firmware's processor UIDs, of which those
// below 256 are known.
static u8 apic_id_of_uid[256];
static bool uid_known[256];
static bool found;

static bool usable(u32 flags)
{
    return flags & (CPU_ENABLED | CPU_ONLINE_CAPABLE);
}

static void read_cpu(u32 uid, u32 apic_id)
{
    if (uid < ARRAY_SIZE(uid_known)) {
        apic_id_of_uid[uid] = (u8)apic_id;
        uid_known[uid] = true;
    }
    cpu_found(apic_id);
    found = true;
}

static void read_entry(const struct entry *e)
{
    switch (e->type) {
    case MADT_LAPIC:
        if (usable(e->lapic.flags) && e->lapic.apic_id <= APIC_ID_MAX)
            read_cpu(e->lapic.uid, e->lapic.apic_id);
        break;
    case MADT_X2APIC:
        if (!usable(e->x2apic.flags))
            break;
        if (e->x2apic.apic_id <= APIC_ID_MAX)
            read_cpu(e->x2apic.uid, e->x2apic.apic_id);
        else
            log_printf("cpu: x2APIC id %u is left out: above %u\n",
                       e->x2apic.apic_id, APIC_ID_MAX);
        break;
    case MADT_IOAPIC:
        ioapic_found(e->ioapic.address, e->ioapic.gsi_base);
        break;
    case MADT_OVERRIDE:
        if (e->override.bus == BUS_ISA)
            isa_line_found(e->override.source, e->override.gsi,
                           e->override.flags);
        break;
    case MADT_LAPIC_ADDRESS:
        lapic_found(e->lapic_address.address);
        break;
    }
}

static void read_nmi(const struct entry *e)
{
    bool wide = e->type == MADT_X2APIC_NMI;
    if (e->type != MADT_LAPIC_NMI && !wide)
        return;
    u32 uid = wide ? e->x2apic_nmi.uid : e->nmi.uid;
    u32 lint = wide ? e->x2apic_nmi.lint : e->nmi.lint;
    bool all = uid == (wide ? ALL_X2APIC_CPUS : ALL_CPUS);
    for (u32 id = 0; all && id <= APIC_ID_MAX; id++)
        lapic_set_nmi_input(id, lint);
    if (!all && uid < ARRAY_SIZE(uid_known) && uid_known[uid])
        lapic_set_nmi_input(apic_id_of_uid[uid], lint);
}

// Calls fn with a copy of each entry, zero-filled if the entry is short. False:
// an entry claims to extend beyond the table.
static bool for_each_entry(const struct acpi_header *table,
                           void (*fn)(const struct entry *e))
{
    const u8 *p = (const u8 *)table + sizeof(struct madt);
    const u8 *end = (const u8 *)table + table->length;
    while (end - p >= 2 && p[1] >= 2 && p[1] <= end - p) {
        struct entry e = { 0 };
        memcpy(&e, p, MIN((size_t)p[1], sizeof(e)));
        fn(&e);
        p += p[1];
    }
    return p == end;
}

void madt_read(const struct acpi_header *table)
{
    if (found || table->length < sizeof(struct madt))
        return;
    lapic_found(((const struct madt *)table)->lapic);
    bool whole = for_each_entry(table, read_entry);
    for_each_entry(table, read_nmi);
    if (!whole)
        log_printf("acpi: the MADT's end is malformed: skipped\n");
}

bool madt_found(void)
{
    return found;
}
