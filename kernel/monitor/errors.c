// system.errors: errors of the machine that did not stop it.

#include "kernel/base/errors.h"
#include "kernel/monitor/sysinfo.h"
#include "lib/string.h"

static int make_errors(struct chain *out, u32 number UNUSED)
{
    LINKER_SET_FOR_EACH(const struct error_counter, e, error_counters) {
        struct sysinfo_error *record = chain_add(out);
        if (!record)
            break;
        record->count = error_counter_read(*e);
        strlcpy(record->name, (*e)->name, sizeof(record->name));
        strlcpy(record->meaning, (*e)->meaning, sizeof(record->meaning));
    }
    return 0;
}

SYSINFO_NODE(errors, .path = "system.errors",
             .type = SYSINFO_TYPE(SYSINFO_DATA, SYSINFO_RECORD_ERROR),
             .make = make_errors);
