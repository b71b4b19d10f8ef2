// kernel.version, kernel.cmdline, kernel.build_id, kernel.records.

#include "arch/boot.h"
#include "kernel/base/version.h"
#include "kernel/monitor/sysinfo.h"
#include "lib/build_id.h"
#include "lib/records.h"
#include "lib/string.h"

static int make_version(struct chain *out, u32 number UNUSED)
{
    chain_printf(out, "%s version %s %s\n", KERNEL_NAME, kernel_release,
                 kernel_version);
    return 0;
}

static int make_cmdline(struct chain *out, u32 number UNUSED)
{
    const char *text = boot_info.cmdline;
    chain_append(out, text, (u32)strlen(text));
    chain_append(out, "\n", 1);
    return 0;
}

// In hexadecimal, as tools print it: it identifies the kernel.elf that has this
// kernel's symbols.
static int make_build_id(struct chain *out, u32 number UNUSED)
{
    extern const u8 build_id_start[], build_id_end[]; // linker.ld
    u8 id[BUILD_ID_MAX];
    u32 size =
        build_id_find(build_id_start, (u32)(build_id_end - build_id_start), id);
    for (u32 i = 0; i < size; i++)
        chain_printf(out, "%02x", id[i]);
    chain_append(out, "\n", 1);
    return 0;
}

// The record types, for programs compiled against another version of the
// kernel: RECORD FIELD OFFSET SIZE KIND UNIT MEANING.
static int make_records(struct chain *out, u32 number UNUSED)
{
    static const char *const kinds[] = { "u32", "s32", "u64", "s64", "text" };
    _Static_assert(ARRAY_SIZE(kinds) == SYSINFO_FIELD_TEXT + 1, "all kinds");
    const struct sysinfo_record_type *t;

    for (u32 r = 1; (t = sysinfo_record_type(r)); r++) {
        for (u32 i = 0; i < t->field_count; i++) {
            const struct sysinfo_field *f = &t->fields[i];
            const char *unit = sysinfo_unit_name(f->unit);
            chain_printf(out, "%s %s %u %u %s %s %s\n", t->name, f->name,
                         f->offset, f->size, kinds[f->kind],
                         unit[0] ? unit : "count", f->meaning);
        }
    }
    return 0;
}

#define TEXT SYSINFO_TYPE(SYSINFO_TEXT, 0)

SYSINFO_NODE(version, .path = "kernel.version", .type = TEXT,
             .make = make_version);
SYSINFO_NODE(cmdline, .path = "kernel.cmdline", .type = TEXT,
             .make = make_cmdline);
SYSINFO_NODE(build_id, .path = "kernel.build_id", .type = TEXT,
             .make = make_build_id);
SYSINFO_NODE(records, .path = "kernel.records", .type = TEXT,
             .make = make_records);
