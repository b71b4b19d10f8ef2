// irqwatch [-n COUNT] IRQ...: shows interrupts as they come, by notifications
//
// An IRQ is an ISA line (0 to 15) or a vector (from 32, also as 0xe0). One line
// is printed for each notification: time, the requested IRQ, vector, number of
// interrupts since the IRQ's last line, and the CPU of the last interrupt.
#include "user/libstrobe/ipc.h"
#include "user/libstrobe/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *lines_wanted; // -n

static const struct tool_option options[] = {
    { 'n', "number", "count", "Exit after this many lines",
      .text = &lines_wanted },
    { 0 },
};
static const struct tool tool = {
    .usage = "irqwatch [OPTIONS] IRQ...",
    .options = options,
    .notes = "Prints a line whenever one of the interrupts has come. An IRQ "
             "is an ISA line (0\nto 15) or a vector (32 to 255, 0x20 to "
             "0xff); those in use are in\n/proc/interrupts\n",
};

static unsigned long number(const char *text, const char *what)
{
    char *end;
    unsigned long n = strtoul(text, &end, 0);

    if (*text < '0' || *text > '9' || *end != '\0')
        fail(2, "%s: not a number of %s", text, what);
    return n;
}

static void watch(int box, const char *text)
{
    if (ipc_irq(box, number(text, "an interrupt"), true) == 0)
        return;
    switch (errno) {
    case ENXIO:
        fail(1, "%s: nothing uses this interrupt (see /proc/interrupts)", text);
    case EINVAL:
        fail(2, "%s: ISA lines are 0 to 15, vectors 32 to 255", text);
    case EBUSY:
        fail(2, "%s: asked for twice", text);
    default:
        fail(1, "%s: %s", text, strerror(errno));
    }
}

static void show(const struct ipc_call *call)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    printf("%6lld.%06ld  irq %3u  vector %#x  count %u  cpu %u\n",
           (long long)now.tv_sec, now.tv_nsec / 1000, call->arg[0],
           call->arg[1], call->arg[2], call->arg[3]);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    unsigned long lines = 0, count = 0;
    struct ipc_call call;
    int first = options_parse(&tool, argc, argv), box;

    if (lines_wanted) {
        count = number(lines_wanted, "lines");
        if (count == 0)
            return 0;
    }
    if (first == argc) {
        complain("which interrupts?");
        options_wrong(&tool);
    }
    box = ipc_box();
    if (box < 0)
        fail(1, "no answerbox: %s", strerror(errno));
    for (int i = first; i < argc; i++)
        watch(box, argv[i]);
    while (count == 0 || lines < count) {
        if (ipc_wait(box, &call, -1) < 0) {
            if (errno != EINTR)
                fail(1, "%s", strerror(errno));
            continue;
        }
        if (call.method != IPC_M_IRQ) {
            if (call.id != 0)
                ipc_answer(box, call.id, -EINVAL);
            continue;
        }
        show(&call);
        lines++;
    }
    return 0;
}
