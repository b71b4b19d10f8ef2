// Each CPU writes its own view, in an NMI. The requesting CPU prints the views
// when all CPUs have answered or timed out. One request at a time,
// `report_busy`.

#include "kernel/sched/hang.h"

#include "arch/mmu.h"
#include "arch/nmi.h"
#include "arch/regs.h"
#include "kernel/base/log.h"
#include "kernel/task/task.h"
#include "lib/cpu_memory.h"
#include "lib/string.h"

#define CALLERS 24

struct view {
    u32 pc, callers[CALLERS], count;
    bool user, interrupts_on;
    u32 irq_depth;
    int preempt_count;
    u32 tid, task; // 0: before the first thread
    char thread_name[16], task_name[TASK_NAME_MAX];
    const struct account *open;
    u32 subsystem;
#ifdef LOCKDEP
    struct lockdep_stack spinlocks, mutexes;
#endif
};

static struct view *views[CPU_MAX];
CPU_MEMORY(views, 1);
static u32 report_busy; // atomic

static void record_thread(struct view *v, const struct thread *t)
{
    v->tid = t->tid;
    v->task = t->task->id;
    strlcpy(v->thread_name, t->name, sizeof(v->thread_name));
    strlcpy(v->task_name, t->task->name, sizeof(v->task_name));
#ifdef LOCKDEP
    v->mutexes = t->lockdep;
    lockdep_spinlocks(this_cpu()->id, &v->spinlocks);
#endif
}

static NOTRACE void record_location(u32 pc, u32 frame, bool interrupts_on,
                                    bool user)
{
    const struct cpu *c = this_cpu();
    struct view *v = views[c->id];
    memset(v, 0, sizeof(*v));
    v->pc = pc;
    v->user = user;
    v->count = user ? 0 : backtrace(frame, v->callers, CALLERS);
    v->interrupts_on = interrupts_on;
    v->irq_depth = c->irq_depth;
    v->preempt_count = (int)c->preempt_count;
    v->open = c->ledger->open;
    v->subsystem = c->ledger->subsystem;
    if (c->thread)
        record_thread(v, c->thread);
}

static NOTRACE void record_from_nmi(const struct trapframe *tf)
{
    record_location(trap_pc(tf), trap_frame_pointer(tf), trap_irqs_on(tf),
                    trap_from_user(tf));
}

// Records what the current interrupt has interrupted; outside an interrupt, the
// caller.
static void record_here(void)
{
    const struct trapframe *tf = this_cpu()->irq_frame;
    if (tf && this_cpu_read(irq_depth))
        record_from_nmi(tf);
    else
        record_location((u32)__builtin_return_address(0), frame_pointer(),
                        irqs_enabled(), false);
}

static void print_address(u32 address)
{
    u32 offset = 0;
    const char *name = ksym_lookup(address, &offset);
    if (name)
        console_printf("  %08x %s+%#x\n", linked_address(address), name,
                       offset);
    else
        console_printf("  %08x\n", address);
}

static void print_account(u32 cpu, const struct view *v)
{
    static const char *const names[] = {
#define SUBSYSTEM_NAME(upper, name) [IN_##upper] = (name),
        SUBSYSTEMS(SUBSYSTEM_NAME)
#undef SUBSYSTEM_NAME
    };
    const struct ledger *l = cpus[cpu]->ledger;
    u32 vector = (u32)(v->open - l->vectors);
    if (v->open == &l->idle)
        console_printf("  account: idle\n");
    else if (v->open == &l->start_up)
        console_printf("  account: start-up\n");
    else if (v->open >= l->vectors && vector < ARRAY_SIZE(l->vectors))
        console_printf("  account: interrupt %#x\n", vector);
    else if (v->user)
        console_printf("  account: the thread, user\n");
    else
        console_printf("  account: the thread, kernel: %s\n",
                       names[MIN(v->subsystem, (u32)IN_OTHER)]);
}

static void print_view(u32 cpu)
{
    const struct view *v = views[cpu];
    console_printf("CPU %u: thread %u (%s), task %u (%s), %s mode, interrupts "
                   "%s, irq depth %u, preempt count %d\n",
                   cpu, v->tid, v->thread_name, v->task, v->task_name,
                   v->user ? "user" : "kernel", v->interrupts_on ? "on" : "off",
                   v->irq_depth, v->preempt_count);
    print_account(cpu, v);
#ifdef LOCKDEP
    lockdep_print("holds", &v->spinlocks);
    lockdep_print("holds", &v->mutexes);
#endif
    print_address(v->pc);
    for (u32 i = 0; i < v->count; i++)
        print_address(v->callers[i]);
}

void print_cpu_locations(const char *why)
{
    if (__atomic_exchange_n(&report_busy, 1, __ATOMIC_ACQUIRE))
        return; // another report is under way
    preempt_disable();
    record_here();
    struct cpu_set silent = nmi_call_others(record_from_nmi);
    console_printf("\nwhere the CPUs are (%s):\n", why);
    for (u32 i = 0; i < cpu_count; i++) {
        if (cpu_set_has(&silent, i))
            console_printf("CPU %u: does not answer, not even to an NMI\n", i);
        else
            print_view(i);
    }
    preempt_enable_no_resched();
    __atomic_store_n(&report_busy, 0, __ATOMIC_RELEASE);
}
