// arch/i386/acpi/madt.c against a model: which CPUs are started, by entries of
// both kinds, and at which inputs they expect NMIs. An input describes the
// entries.
#include "log.h"

#include <string.h>

// Included, so that each input can reset the static variables.
#include "arch/i386/acpi/cpus.c"
#include "arch/i386/acpi/madt.c"

#define CPUS 400 // more than can be used
#define NMIS 400

struct cpu_features cpu_features;
struct irq_line isa_lines[ISA_IRQS];

static u8 table[16384];
static u32 length;

static struct cpu_entry {
    u32 uid, apic_id, flags;
} cpu[CPUS];
static struct nmi_entry {
    u32 uid, lint;
    bool all;
} nmi[NMIS];
static u32 cpu_entries, nmi_entries;

int ioapic_add(paddr_t base UNUSED, u32 gsi_base UNUSED)
{
    return 0;
}

static void begin(bool x2apic)
{
    cpu_features.x2apic = x2apic;
    acpi_cpu_count = known_count = added_later = 0;
    cpu_entries = nmi_entries = 0;
    nmi_inputs_found(1);
    found = false;
    memset(table, 0, sizeof(table));
    length = sizeof(struct madt);
}

static void add(const struct entry *e)
{
    memcpy(table + length, e, e->length);
    length += e->length;
}

static void add_cpu(bool wide, u32 uid, u32 apic_id, u32 flags)
{
    struct entry narrow_entry = { .type = MADT_LAPIC,
                                  .length = 8,
                                  .lapic = { (u8)uid, (u8)apic_id, flags } };
    struct entry wide_entry = { .type = MADT_X2APIC,
                                .length = 16,
                                .x2apic = { 0, apic_id, flags, uid } };
    add(wide ? &wide_entry : &narrow_entry);
    if (!wide && (u8)apic_id == NO_APIC_ID)
        return;
    if (wide && apic_id == NO_X2APIC_ID)
        return;
    cpu[cpu_entries++] =
        (struct cpu_entry){ wide ? uid : (u8)uid, wide ? apic_id : (u8)apic_id,
                            flags };
}

static void add_nmi(bool wide, u32 uid, u8 lint)
{
    struct entry narrow_entry = { .type = MADT_LAPIC_NMI,
                                  .length = 6,
                                  .nmi = { (u8)uid, 0, lint } };
    struct entry wide_entry = { .type = MADT_X2APIC_NMI,
                                .length = 12,
                                .x2apic_nmi = { 0, uid, lint } };
    add(wide ? &wide_entry : &narrow_entry);
    u32 all = wide ? ALL_X2APIC_CPUS : ALL_CPUS;
    uid = wide ? uid : (u8)uid;
    nmi[nmi_entries++] = (struct nmi_entry){ uid, lint, uid == all };
}

static void read_table(void)
{
    ((struct acpi_header *)table)->length = length;
    struct acpi_header *copy = guarded(table, length);
    madt_read(copy);
    free(copy);
}

static bool started(u32 apic_id)
{
    for (u32 i = 0; i < acpi_cpu_count; i++) {
        if (acpi_cpu_apic_ids[i] == apic_id)
            return true;
    }
    return false;
}

static bool usable(const struct cpu_entry *e)
{
    return e->flags & 1 && (e->apic_id < 255 || cpu_features.x2apic);
}

// Each usable CPU once, in the table's order, as many as there is room for.
static void check_cpus(void)
{
    u32 count = 0;
    for (u32 i = 0; i < cpu_entries; i++) {
        bool again = false;
        for (u32 k = 0; k < i && !again; k++)
            again = usable(&cpu[k]) && cpu[k].apic_id == cpu[i].apic_id;
        if (!usable(&cpu[i]) || again || count == CPU_MAX)
            continue;
        REQUIRE(acpi_cpu_apic_ids[count] == cpu[i].apic_id);
        count++;
    }
    REQUIRE(acpi_cpu_count == count);
}

// The last entry that names the CPU, or all of them, holds.
static void check_nmis(void)
{
    for (u32 i = 0; i < cpu_entries; i++) {
        u32 lint = 1;
        for (u32 n = 0; n < nmi_entries; n++) {
            bool named = nmi[n].all;
            for (u32 k = 0; k < cpu_entries; k++)
                named |= cpu[k].flags & 1 && cpu[k].uid == nmi[n].uid &&
                         cpu[k].apic_id == cpu[i].apic_id;
            if (named)
                lint = nmi[n].lint != 0;
        }
        REQUIRE(nmi_input(cpu[i].apic_id) == lint);
    }
}

static void known_tables(void)
{
    for (u32 x2apic = 0; x2apic < 2; x2apic++) {
        begin(x2apic);
        add_cpu(false, 0, 0, CPU_ENABLED);
        add_cpu(false, 1, 1, 0); // not there
        add_cpu(false, 2, 2, CPU_ONLINE_CAPABLE);
        add_cpu(false, 3, 254, CPU_ENABLED);
        add_cpu(true, 4, 9, CPU_ENABLED);
        add_cpu(true, 5, 254, CPU_ENABLED); // again
        add_cpu(true, 300, 255, CPU_ENABLED);
        add_cpu(true, 301, 70000, CPU_ENABLED);
        add_nmi(true, 301, 0);
        read_table();
        REQUIRE(acpi_cpu_count == (x2apic ? 5 : 3) && added_later == 1);
        REQUIRE(started(0) && started(254) && started(9) && madt_found());
        REQUIRE(started(70000) == x2apic && cpus_need_x2apic() == x2apic);
        REQUIRE(nmi_input(70000) == 0 && nmi_input(9) == 1);
        check_cpus();
        check_nmis();
    }
    begin(true);
    for (u32 i = 0; i < CPU_MAX + 3; i++)
        add_cpu(true, i, 2 * i, CPU_ENABLED);
    read_table();
    check_cpus();
    REQUIRE(acpi_cpu_count == CPU_MAX);
    cpus_complete(1);
    REQUIRE(acpi_cpu_apic_ids[0] == 1);
    REQUIRE(acpi_cpu_count == CPU_MAX);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
    static bool known_passed;
    struct input in = { data, size };
    if (!known_passed)
        known_tables();
    known_passed = true;
    begin(take_byte(&in) & 1);
    while (in.left && cpu_entries < CPU_MAX && nmi_entries < NMIS &&
           length + sizeof(struct entry) <= sizeof(table)) {
        u8 how = take_byte(&in);
        bool wide = how & 1;
        u32 uid = how & 2 ? take_byte(&in) : -1u;
        u32 scale = how & 4 && wide ? 0x1010101 : 1;
        if (how & 8)
            add_nmi(wide, uid, how >> 4);
        else
            add_cpu(wide, uid, take_byte(&in) * scale, how >> 4);
    }
    read_table();
    check_cpus();
    check_nmis();
    return 0;
}
