#include "kernel/base/errors.h"

#include "lib/string.h"

u32 error_counter_named(const char *name)
{
    LINKER_SET_FOR_EACH(const struct error_counter, e, error_counters) {
        if (!strcmp((*e)->name, name))
            return error_counter_read(*e);
    }
    return 0;
}
