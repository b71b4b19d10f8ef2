// Intel MultiProcessor Specification 1.4: CPUs and interrupts before ACPI. Read
// only if there is no MADT.
#include "arch/i386/acpi/acpi.h"
#include "arch/i386/dev/port.h"
#include "arch/i386/irq/controllers.h"
#include "kernel/base/log.h"
#include "lib/string.h"

#define BDA_EBDA_SEGMENT 0x40eu
#define BDA_BASE_MEMORY_KIB 0x413u
#define BIOS_START 0xf0000u
#define BIOS_END 0x100000u
#define IOAPIC_DEFAULT_BASE 0xfec00000u

#define FEATURE2_IMCR 0x80
#define IMCR_SELECT 0x22 // 3.6.2.1: selects the 8259 or the APICs
#define IMCR_DATA 0x23
#define IMCR_REGISTER 0x70
#define IMCR_APIC 1

struct floating {
    char signature[4];
    u32 config;
    u8 length, revision, checksum, features[5];
} PACKED;
_Static_assert(sizeof(struct floating) == 16, "MP 1.4, 4.1");

struct config {
    char signature[4];
    u16 length;
    u8 revision, checksum;
    char oem[8], product[12];
    u32 oem_table;
    u16 oem_table_size, entries;
    u32 lapic;
    u16 extended_length;
    u8 extended_checksum, reserved;
} PACKED;
_Static_assert(sizeof(struct config) == 44, "MP 1.4, 4.2");

enum { MP_CPU, MP_BUS, MP_IOAPIC, MP_IO_INTERRUPT, MP_LOCAL_INTERRUPT };
enum { INTERRUPT_VECTORED, INTERRUPT_NMI };
#define CPU_SIZE 20u
#define ENTRY_SIZE 8u
#define ENABLED 1
#define ALL_APICS 0xffu

struct entry { // the part used; all but CPU entries have 8 bytes
    u8 type, id;
    union {
        struct {
            u8 version, flags;
        } cpu;
        char bus_name[6];
        struct {
            u8 version, flags;
            u32 address;
        } PACKED ioapic;
        // in an interrupt entry, `id` is the type of interrupt
        struct {
            u16 flags;
            u8 bus, source, apic, pin;
        } PACKED interrupt;
    };
} PACKED;

static bool is_isa_bus[256];
static u32 gsi_base_of[256]; // by I/O APIC id
static u32 next_gsi;

static const struct floating *scan(paddr_t start, u32 size)
{
    const char *p = map_device(start, size);
    for (u32 i = 0; p && i + sizeof(struct floating) <= size; i += 16) {
        const struct floating *f = (const void *)(p + i);
        if (!memcmp(f->signature, "_MP_", 4) && f->length == 1 &&
            checksum_ok(f, sizeof(*f)))
            return f;
    }
    return NULL;
}

static const struct floating *find(void)
{
    const u16 *segment = map_device(BDA_EBDA_SEGMENT, sizeof(u16));
    const u16 *kib = map_device(BDA_BASE_MEMORY_KIB, sizeof(u16));
    const struct floating *f = NULL;
    if (segment && *segment >= 0x8000 && *segment < 0xa000)
        f = scan((paddr_t)*segment << 4, KIB(1));
    if (!f && kib && *kib >= 512 && *kib <= 640)
        f = scan(KIB(*kib - 1u), KIB(1));
    return f ? f : scan(BIOS_START, BIOS_END - BIOS_START);
}

static void read_interrupt(const struct entry *e)
{
    u32 irq = e->interrupt.source;
    if (e->id == INTERRUPT_VECTORED && is_isa_bus[e->interrupt.bus])
        isa_line_found(irq, gsi_base_of[e->interrupt.apic] + e->interrupt.pin,
                       e->interrupt.flags);
}

static void read_local_interrupt(const struct entry *e)
{
    if (e->id != INTERRUPT_NMI)
        return;
    if (e->interrupt.apic == ALL_APICS)
        nmi_inputs_found(e->interrupt.pin);
    else
        nmi_input_found(e->interrupt.apic, e->interrupt.pin);
}

static void read_ioapic(const struct entry *e)
{
    if (!(e->ioapic.flags & ENABLED))
        return;
    gsi_base_of[e->id] = next_gsi;
    ioapic_found(e->ioapic.address, next_gsi);
    next_gsi = ioapic_end();
}

static void read_entry(const struct entry *e)
{
    switch (e->type) {
    case MP_CPU:
        if (e->cpu.flags & ENABLED)
            cpu_found(e->id);
        break;
    case MP_BUS:
        is_isa_bus[e->id] = !memcmp(e->bus_name, "ISA   ", 6) ||
                            !memcmp(e->bus_name, "EISA  ", 6);
        break;
    case MP_IOAPIC:
        read_ioapic(e);
        break;
    case MP_IO_INTERRUPT:
        read_interrupt(e);
        break;
    case MP_LOCAL_INTERRUPT:
        read_local_interrupt(e);
        break;
    }
}

static bool read_config(paddr_t base)
{
    const struct config *c = map_device(base, sizeof(*c));
    u16 length = c ? c->length : 0;
    if (length < sizeof(*c))
        return false;
    c = map_device(base, length);
    if (!c || memcmp(c->signature, "PCMP", 4) || !checksum_ok(c, length))
        return false;
    lapic_found(c->lapic);
    const u8 *p = (const u8 *)(c + 1), *end = (const u8 *)c + length;
    for (u32 i = 0; i < c->entries && end > p; i++) {
        u32 size = *p == MP_CPU ? CPU_SIZE : ENTRY_SIZE;
        if ((u32)(end - p) < size)
            break;
        struct entry e;
        memcpy(&e, p, sizeof(e));
        read_entry(&e);
        p += size;
    }
    return true;
}

// The default configuration (chapter 5): two CPUs, one I/O APIC.
static void default_config(void)
{
    cpu_found(0);
    cpu_found(1);
    ioapic_found(IOAPIC_DEFAULT_BASE, 0);
    isa_line_found(0, 2, 0);
}

void mp_tables_read(void)
{
    const struct floating *f = find();
    if (!f)
        return;
    if (f->features[0])
        default_config();
    else if (!read_config(f->config))
        log_printf("mp: the configuration table is malformed: skipped\n");
    else
        log_printf("mp: using the MP tables\n");
    if (f->features[1] & FEATURE2_IMCR) {
        out8(IMCR_SELECT, IMCR_REGISTER);
        out8(IMCR_DATA, IMCR_APIC);
    }
}
