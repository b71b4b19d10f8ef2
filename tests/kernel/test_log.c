// The log: lines of several CPUs at once.
#include "arch/cpu.h"
#include "kernel/base/log.h"
#include "kernel/mm/heap.h"
#include "lib/string.h"
#include "tests/kernel/test.h"

#define LINES 60u
#define TEXT_MAX 65536u

static void say(void *arg UNUSED)
{
    for (u32 i = 0; i < LINES; i++)
        log_printf("# log line %u\n", i);
}

// Microseconds from "[    1.234567] "; *rest: the text after them.
static u64 stamp(const char *line, const char **rest)
{
    u64 us = 0;
    for (line++; *line && *line != ']'; line++) {
        if (*line >= '0' && *line <= '9')
            us = us * 10 + (u32)(*line - '0');
    }
    *rest = line;
    return us;
}

KERNEL_TEST(log_lines_are_in_order)
{
    char *text = kmalloc(TEXT_MAX);
    expect(text != NULL);
    smp_call_others(say, NULL);
    say(NULL);
    size_t n = log_read(text, TEXT_MAX - 1);
    text[n] = '\0';
    u64 last = 0;
    u32 mine = 0;
    const char *line = strchr(text, '\n'); // the first line may be truncated
    while (line && line[1] == '[') {
        const char *rest;
        u64 us = stamp(line + 1, &rest);
        expect(us >= last);
        last = us;
        mine += !strncmp(rest, "] # log line ", 13);
        line = strchr(rest, '\n');
    }
    expect(mine >= LINES);
    kfree(text);
}
