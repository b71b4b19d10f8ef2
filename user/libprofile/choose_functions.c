#include "choose_functions.h"

#include "user/libstrobe/strobe.h"
#include "user/libstrobe/sysinfo.h"

#include <strobe/calls.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PATTERNS_MAX 64u
#define NODE "system.functions"

const struct functions *kernel_functions(void)
{
    static struct functions all;
    size_t size;

    if (all.count)
        return &all;
    // Both stay: the names are those of the records.
    const struct sysinfo_function *f = sysinfo_read_large(NODE, &size), *end;
    all.list = f ? malloc(size / sizeof(*f) * sizeof(*all.list)) : NULL;
    if (!all.list)
        fail(1, "%s: %s", NODE, kbox_problem(errno));
    for (end = f + size / sizeof(*f); f < end; f++)
        all.list[all.count++] =
            (struct function){ f->address, f->size, f->name, f->file };
    return &all;
}

const char *take_patterns(void *choice, char *text)
{
    static const char *list[PATTERNS_MAX]; // of the program's one choice
    struct function_choice *c = choice;

    c->patterns = list;
    for (char *p = strtok(text, ","); p; p = strtok(NULL, ",")) {
        if (c->pattern_count == PATTERNS_MAX)
            return "there are too many patterns (64 at most)";
        if (strcmp(p, "!") == 0)
            return "a pattern follows the !";
        list[c->pattern_count++] = p;
    }
    return NULL;
}

uint32_t *choose_functions(const struct function_choice *choice, char letter,
                           uint32_t *count)
{
    if (!choice->pattern_count && !choice->bytes) {
        *count = CALLS_ALL;
        return NULL;
    }
    const struct functions *all = kernel_functions();
    uint32_t *chosen = malloc((all->count + 1) * sizeof(*chosen));
    if (!chosen)
        fail(1, "not enough memory");
    const char *missed = functions_missed(all, choice);
    if (missed) {
        complain("-%c '%s': no such %s (sysinfo " NODE ")", letter, missed,
                 strchr(missed, '/') ? "source file" : "function");
        functions_print_near(all, missed, stderr);
        exit(1);
    }
    *count = functions_choose(all, choice, chosen);
    if (!*count)
        fail(1,
             "-%c: the patterns choose no function: what one chooses, "
             "another leaves out%s",
             letter, choice->bytes ? ", or all are smaller than -Z" : "");
    return chosen;
}
