#include "trace_begin.h"

#include "user/libstrobe/strobe.h"
#include "user/libstrobe/sysinfo.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NODE "system.functions"

void kernel_functions_read(struct functions *f)
{
    size_t size;
    char *text = sysinfo_read(NODE, &size);

    if (!text)
        fail(1, "%s: %s", NODE, kbox_problem(errno));
    const char *problem = functions_read(f, text, size);
    if (problem)
        fail(1, "%s: %s", NODE, problem);
    free(text);
}

uint32_t *kernel_functions_choose(const struct function_choice *c, char letter,
                                  uint32_t *count)
{
    struct functions all;

    kernel_functions_read(&all);
    uint32_t *chosen = malloc((all.count + 1) * sizeof(*chosen));
    if (!chosen)
        fail(1, "not enough memory");
    const char *missed = functions_missed(&all, c);
    if (missed) {
        complain("-%c '%s': no such %s (sysinfo " NODE ")", letter, missed,
                 strchr(missed, '/') ? "source file" : "function");
        functions_print_near(&all, missed, stderr);
        exit(1);
    }
    *count = functions_choose(&all, c, chosen);
    functions_free(&all);
    return chosen;
}

int trace_phone(void)
{
    int phone = tracing_phone();

    if (phone < 0)
        fail(1, "%s", kbox_problem(errno));
    return phone;
}

void trace_begin(int phone, const struct calls_options *o)
{
    struct calls_info info;

    if (tracing_begin(phone, o) == 0)
        return;
    int error = errno;
    if (error == EBUSY && tracing_info(phone, &info) == 0 && info.owner)
        fail(1,
             "task %u traces the kernel's calls already, and there is one "
             "trace at a time: cprofile get shows it",
             info.owner);
    if (error == ESRCH)
        fail(1, "-t %u: no such task, or it has ended (see ps)", o->task);
    fail(1, "%s", tracing_problem(error));
}
