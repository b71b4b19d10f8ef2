// ACPI table discovery: RSDP, then XSDT or RSDT, then each table that they
// list.
#include "arch/boot.h"
#include "arch/i386/acpi/acpi.h"
#include "arch/i386/dev/pci_config.h"
#include "kernel/base/cmdline.h"
#include "kernel/base/log.h"
#include "lib/string.h"

KERNEL_ARG(acpi, "acpi=off: as if the firmware had no ACPI tables");

// Real tables are far smaller; larger values are taken for garbage.
#define TABLE_SIZE_MAX MIB(1)
#define TABLES_MAX 256u

#define BDA_EBDA_SEGMENT 0x40eu
#define BIOS_START 0xe0000u
#define BIOS_END 0x100000u
#define RSDP_SIGNATURE "RSD PTR "
#define RSDP_SIZE_V1 20u

struct rsdp {
    char signature[8];
    u8 checksum;
    char oem[6];
    u8 revision;
    u32 rsdt;
    // from revision 2 on
    u32 length;
    u64 xsdt;
    u8 extended_checksum, reserved[3];
} PACKED;
_Static_assert(sizeof(struct rsdp) == 36 &&
                   offsetof(struct rsdp, length) == RSDP_SIZE_V1,
               "ACPI 6.4, 5.2.5.3");

struct acpi_info acpi_info;
struct acpi_found acpi_found[ACPI_TABLES_MAX];
u32 acpi_found_count;

bool checksum_ok(const void *p, u32 size)
{
    const u8 *bytes = p;
    u8 sum = 0;
    for (u32 i = 0; i < size; i++)
        sum += bytes[i];
    return sum == 0;
}

static void remember(paddr_t base, const struct acpi_header *table,
                     const char *problem)
{
    if (acpi_found_count < ACPI_TABLES_MAX)
        acpi_found[acpi_found_count++] =
            (struct acpi_found){ base, table, problem };
}

const struct acpi_header *acpi_table(paddr_t base)
{
    const struct acpi_header *t = map_device(base, sizeof(*t));
    const char *problem = "cannot be mapped";
    if (t) {
        u32 length = t->length;
        problem = "has a bad length";
        if (length >= sizeof(*t) && length <= TABLE_SIZE_MAX) {
            t = map_device(base, length);
            if (t && t->length == length && checksum_ok(t, length)) {
                remember(base, t, NULL);
                return t;
            }
            problem = t ? "has a bad checksum" : "cannot be mapped";
        }
    }
    remember(base, NULL, problem);
    log_printf("acpi: the table at %#llx %s: skipped\n", base, problem);
    return NULL;
}

bool pci_express_present(void)
{
    for (u32 i = 0; i < acpi_found_count; i++) {
        const struct acpi_header *t = acpi_found[i].table;
        if (t && !memcmp(t->signature, "MCFG", sizeof(t->signature)))
            return true;
    }
    return false;
}

static bool is_rsdp(const struct rsdp *r)
{
    return !memcmp(r->signature, RSDP_SIGNATURE, sizeof(r->signature)) &&
           checksum_ok(r, RSDP_SIZE_V1);
}

static const struct rsdp *scan(paddr_t start, u32 size)
{
    const char *p = map_device(start, size);
    for (u32 i = 0; p && i + sizeof(struct rsdp) <= size; i += 16) {
        const struct rsdp *r = (const void *)(p + i);
        if (is_rsdp(r))
            return r;
    }
    return NULL;
}

static const struct rsdp *find_rsdp(void)
{
    const struct rsdp *r = (const void *)boot_info.rsdp_data;
    if (boot_info.rsdp_copied && is_rsdp(r))
        return r;
    const u16 *segment = map_device(BDA_EBDA_SEGMENT, sizeof(*segment));
    paddr_t ebda = segment ? (paddr_t)*segment << 4 : 0;
    if (ebda >= 0x80000 && ebda < 0xa0000)
        r = scan(ebda, KIB(1));
    else
        r = NULL;
    return r ? r : scan(BIOS_START, BIOS_END - BIOS_START);
}

static void read_table(paddr_t base)
{
    static const struct {
        char signature[5];
        void (*read)(const struct acpi_header *table);
    } readers[] = {
        { "APIC", madt_read },       { "FACP", fadt_read },
        { "HPET", hpet_table_read }, { "SSDT", ssdt_read },
        { "SPCR", spcr_read },
    };
    const struct acpi_header *t = acpi_table(base);
    for (u32 i = 0; t && i < ARRAY_SIZE(readers); i++) {
        if (!memcmp(t->signature, readers[i].signature, 4))
            readers[i].read(t);
    }
}

// Reads the tables that the root table lists by addresses of `width` bytes.
// False: the root table is unusable.
static bool read_root(paddr_t base, const char *signature, u32 width)
{
    const struct acpi_header *root = base ? acpi_table(base) : NULL;
    if (!root || memcmp(root->signature, signature, 4))
        return false;
    const char *entries = (const char *)(root + 1);
    u32 count = (root->length - sizeof(*root)) / width;
    log_printf("acpi: %s with %u tables\n", signature, count);
    for (u32 i = 0; i < MIN(count, TABLES_MAX); i++) {
        u64 address = 0;
        memcpy(&address, entries + i * width, width);
        if (address)
            read_table(address);
    }
    return true;
}

void hpet_table_read(const struct acpi_header *table)
{
    struct {
        struct acpi_header header;
        u32 block_id;
        struct acpi_address base;
    } PACKED hpet;
    if (table->length < sizeof(hpet))
        return;
    memcpy(&hpet, table, sizeof(hpet));
    if (hpet.base.space == ACPI_SPACE_MEMORY)
        acpi_info.hpet = hpet.base.address;
}

void acpi_init(void)
{
    bool off = !strcmp(arg_acpi.value, "off");
    if (arg_acpi.present && !off)
        log_printf("warning: acpi=%s: only acpi=off is known\n",
                   arg_acpi.value);
    const struct rsdp *r = off ? NULL : find_rsdp();
    if (!r) {
        log_printf("acpi: no tables\n");
        return;
    }
    bool extended = r->revision >= 2 && r->length >= sizeof(*r) &&
                    r->length <= PAGE_SIZE && checksum_ok(r, sizeof(*r));
    if (extended && read_root(r->xsdt, "XSDT", sizeof(u64)))
        return;
    if (!read_root(r->rsdt, "RSDT", sizeof(u32)))
        log_printf("acpi: no usable root table\n");
}
