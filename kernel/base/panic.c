// Panic: reports all known state on every console, then ends the machine.
//
// Takes no lock and allocates nothing. The first CPU to panic owns the
// consoles; a second one only halts; a panic inside the panic ends the machine
// at once.

#include "arch/cpu.h"
#include "arch/mmu.h"
#include "arch/regs.h"
#include "kernel/base/log.h"
#include "kernel/base/thread.h"
#include "kernel/trace/point.h"
#include "lib/format.h"
#include "lib/string.h"

#define FRAMES_MAX 32

static u32 panicking; // CPU id + 1 of the owner

static void print_backtrace(const u32 *pcs, u32 count)
{
    for (u32 i = 0; i < count; i++) {
        u32 offset;
        const char *name = ksym_lookup(pcs[i], &offset);
        if (name)
            console_printf("  %08x %s+%#x\n", linked_address(pcs[i]), name,
                           offset);
        else
            console_printf("  %08x\n", pcs[i]);
    }
}

static void print_where(void)
{
    char who[80];
    struct cpu *cpu = this_cpu();
    if (cpu->thread) {
        thread_describe(cpu->thread, who, sizeof(who));
        console_printf("CPU %u, %s, irq depth %u, preempt count %d\n", cpu->id,
                       who, cpu->irq_depth, cpu->preempt_count);
    } else {
        console_printf("CPU %u, before the first thread\n", cpu->id);
    }
}

// True on the one CPU that reports.
static bool take_over(void)
{
    irq_disable();
    u32 expected = 0, me = this_cpu()->id + 1;
    if (__atomic_compare_exchange_n(&panicking, &expected, me, false,
                                    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        return true;
    if (panicking == me)
        machine_panic_exit();
    return false;
}

static NORETURN void end_machine(void)
{
    trace_print_last_events();
    console_printf("---[ end of panic ]---\n");
    machine_panic_exit();
    cpu_halt_forever();
}

// Returns on one CPU only; the other CPUs are stopped then.
static void begin_report(const char *fmt, va_list args)
{
    if (!take_over())
        cpu_halt_forever();
    struct cpu_set running = smp_stop_others();
    char message[256];
    format_va(message, sizeof(message), fmt, args);
    console_printf("\nKERNEL PANIC: %s\n", message);
    print_where();
    if (image_slide())
        console_printf("moved by %#x: registers and stacks have addresses that "
                       "are as much higher than kernel.elf's\n",
                       image_slide());
    CPU_SET_FOR_EACH(cpu, &running)
    console_printf("CPU %u has not stopped\n", cpu);
}

void panic(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    begin_report(fmt, args);
    va_end(args);
    u32 pcs[FRAMES_MAX];
    print_backtrace(pcs, backtrace(frame_pointer(), pcs, FRAMES_MAX));
    end_machine();
}

void panic_trap(const struct trapframe *tf, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    begin_report(fmt, args);
    va_end(args);
    trap_print_registers(tf);
    u32 pcs[FRAMES_MAX] = { trap_pc(tf) };
    print_backtrace(
        pcs, 1 + backtrace(trap_frame_pointer(tf), pcs + 1, FRAMES_MAX - 1));
    end_machine();
}
