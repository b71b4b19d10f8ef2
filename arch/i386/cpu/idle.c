// How an idle CPU waits: by HLT, by MWAIT or in a loop.
//
// HLT ends at an interrupt only, so waking an idle CPU takes an interrupt from
// the CPU that wakes it. MWAIT also ends when another CPU writes to the watched
// cache line, which holds need_resched; so does the loop. While a CPU waits in
// such a way its `idle_watches` is set, and no interrupt is sent to it.
//
// No wake-up is lost. The waker holds the run queue's lock; it queues its
// thread, reads idle_watches and then sets need_resched. If idle_watches is 0,
// it sends the interrupt. Else this CPU has not taken that lock since it began
// to wait, as it clears idle_watches first, and need_resched is written before
// this CPU's check, which then fails, or after MONITOR, which then ends MWAIT.
// If the wait ends otherwise, the scheduler takes the lock and finds the
// thread. An interrupt or NMI between MONITOR and MWAIT makes MWAIT return at
// once, as does a wrong line: the caller checks again and comes back.
//
// SDM vol. 3A, "Management of Idle and Blocked Conditions" and "MONITOR/MWAIT
// Address Range Determination"; vol. 2B, MWAIT. Hint 0 is C1: the TSC and the
// local APIC's timer go on.
#include "arch/i386/cpu/idle.h"

#include "arch/i386/cpu/arch_cpu.h"
#include "kernel/base/cmdline.h"
#include "kernel/base/log.h"
#include "lib/branch.h"

KERNEL_ARG(idle, "idle=hlt|mwait|poll: how idle CPUs wait");

struct branch idle_watching; // constant after start-up
static enum idle_way way;

#define POLLS 1000u // then the scheduler looks for threads to take over

static NOTRACE void wait_mwait(const struct cpu *cpu)
{
    __asm__ volatile("monitor" ::"a"(&cpu->need_resched), "c"(0), "d"(0)
                     : "memory");
    if (READ_ONCE(cpu->need_resched))
        return;
    // STI takes effect after MWAIT has begun: no interrupt comes in between.
    __asm__ volatile("sti; mwait" ::"a"(0), "c"(0) : "memory");
}

static NOTRACE void wait_polling(const struct cpu *cpu)
{
    irq_enable();
    for (u32 i = 0; i < POLLS && !READ_ONCE(cpu->need_resched); i++)
        cpu_relax();
}

NOTRACE void cpu_idle_watch(void)
{
    struct cpu *cpu = this_cpu();
    WRITE_ONCE(cpu->idle_watches, 1);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (way == IDLE_MWAIT)
        wait_mwait(cpu);
    else
        wait_polling(cpu);
    irq_disable();
    WRITE_ONCE(cpu->idle_watches, 0);
}

enum strobe_idle idle_reported(void)
{
    static const enum strobe_idle names[] = {
        [IDLE_HLT] = STROBE_IDLE_HLT,
        [IDLE_MWAIT] = STROBE_IDLE_MWAIT,
        [IDLE_POLL] = STROBE_IDLE_POLL,
    };
    return names[way];
}

void idle_init(void)
{
    struct idle_cpuid id = { .leaf_1_ecx = cpuid(1, 0).ecx };
    if (cpuid(0, 0).eax >= 5)
        id.leaf_5_ebx = cpuid(5, 0).ebx;
    const char *problem;
    way = idle_choose(&id, arg_idle.present ? arg_idle.value : NULL, &problem);
    if (problem)
        log_printf("warning: idle=%s: %s; idle CPUs halt by HLT\n",
                   arg_idle.value, problem);
    if (way != IDLE_HLT)
        branch_set(&idle_watching, true);
}
