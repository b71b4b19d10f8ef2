// system.functions: the functions that call tracing can choose
// (<strobe/calls.h>), by address. A line of each: ADDRESS SIZE NAME FILE, the
// address in hexadecimal, the size in bytes. A function from a header has the
// file of the object that it was compiled into.

#include "kernel/base/log.h"
#include "kernel/monitor/sysinfo.h"

#include <arch/text.h>

static int make_functions(struct chain *out, u32 number UNUSED)
{
    for (const u32 *site = text_entries_start; site < text_entries_end;
         site++) {
        u32 offset;
        const char *name = ksym_lookup(*site, &offset);
        const char *file = ksym_file(*site);
        if (name && !offset)
            chain_printf(out, "%08x %u %s %s\n", *site, ksym_bytes(*site), name,
                         file ? file : "?");
    }
    return 0;
}

SYSINFO_NODE(functions, .path = "system.functions",
             .type = SYSINFO_TYPE(SYSINFO_TEXT, 0), .restricted = true,
             .make = make_functions);
