// Output is written straight to the consoles: the log's lock, and others, may
// be held by a hung CPU.

#include "kernel/base/tty_driver.h"

#include "arch/clock.h"
#include "kernel/base/log.h"
#include "kernel/mm/frame.h"
#include "kernel/sched/hang.h"
#include "kernel/task/task.h"
#include "lib/string.h"

#define LETTER_LIMIT_NS (5 * NSEC_PER_SEC)
#define LOCK_TRIES 1000000u
#define FRAME_KIB (PAGE_SIZE / 1024)

// Owned by the console's interrupt handler.
static u64 letter_until; // clock_now_ns(); 0: no break received

// --- t: tasks ---------------------------------------------------------------

static const char *const states[] = { "runs",  "is ready",   "sleeps",
                                      "waits", "is stopped", "is dead" };

static void print_thread(const struct thread *t)
{
    u32 state = READ_ONCE(t->state);
    const char *on = READ_ONCE(t->wait_on);
    bool asleep = state == THREAD_SLEEPING || state == THREAD_WAITING;
    console_printf("  thread %u (%s) %s%s%s%s, CPU %u\n", t->tid, t->name,
                   state < ARRAY_SIZE(states) ? states[state] : "?",
                   asleep && on ? " for '" : "", asleep && on ? on : "",
                   asleep && on ? "'" : "", READ_ONCE(t->cpu)->id);
}

static void print_task(struct task *t, void *arg UNUSED)
{
    console_printf("task %u (%s), of %u%s\n", t->id, t->name,
                   t->parent ? t->parent->id : 0, t->zombie ? ", zombie" : "");
    struct thread *thread;
    list_for_each(thread, &t->threads, task_node)
        print_thread(thread);
}

static void print_tasks(void)
{
    u32 flags = irq_save(), tries = 0;
    while (!spin_try_lock(&tasks_lock) && ++tries < LOCK_TRIES)
        cpu_relax();
    if (tries < LOCK_TRIES) {
        print_task(&kernel_task, NULL);
        task_for_each_locked(print_task, NULL);
        spin_unlock(&tasks_lock);
    } else {
        console_printf("tasks: not listed, tasks_lock is held\n");
    }
    irq_restore(flags);
}

// --- m: memory --------------------------------------------------------------

static void print_memory(void)
{
    static const char *const uses[FRAME_USES] = {
        [FRAME_FREE] = "free",     [FRAME_KERNEL] = "kernel",
        [FRAME_SLAB] = "slabs",    [FRAME_PAGETABLE] = "page tables",
        [FRAME_KSTACK] = "stacks", [FRAME_USER] = "programs",
        [FRAME_FILE] = "files",    [FRAME_BUFFER] = "buffers",
    };
    struct frame_stats s;
    frame_stats(&s);
    console_printf("memory: %u KiB", (u32)s.total * FRAME_KIB);
    for (u32 i = 0; i < FRAME_USES; i++)
        console_printf(", %s %u", uses[i], (u32)s.by_use[i] * FRAME_KIB);
    console_printf("\n");
}

// ----------------------------------------------------------------------------

void sysrq(char letter)
{
    switch (letter) {
    case 'l':
        print_cpu_locations("SysRq");
        break;
    case 't':
        print_tasks();
        break;
    case 'm':
        print_memory();
        break;
    case 'b':
        console_printf("SysRq: the machine starts again\n");
        machine_reset();
    default:
        console_printf("SysRq: l: where the CPUs are, t: tasks, m: memory, "
                       "b: start again\n");
    }
}

// Two breaks within the limit are one request: an undriven line may be a
// continuous series of breaks.
void sysrq_break(void)
{
    u64 now = clock_now_ns();
    bool again = letter_until && now < letter_until;
    letter_until = now + LETTER_LIMIT_NS;
    if (!again)
        print_cpu_locations("break on the serial line");
}

bool sysrq_letter(char c)
{
    if (likely(!letter_until))
        return false;
    bool in_time = clock_now_ns() < letter_until;
    letter_until = 0;
    if (!in_time || !strchr("ltmb", c))
        return false;
    sysrq(c);
    return true;
}
