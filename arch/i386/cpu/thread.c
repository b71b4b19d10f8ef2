// The machine's part of threads: a new thread's stack, and the switch.
//
// A thread's user registers are a trap frame at the top of its kernel stack;
// its esp (while it does not run), gs, TLS and FPU state are in struct
// arch_thread. They are accessed by the thread itself and by the CPU that
// switches to it.

#include "kernel/base/thread.h"
#include "arch/i386/cpu/arch_cpu.h"
#include "arch/mmu.h"
#include "kernel/base/log.h"
#include "lib/string.h"

// entry.S
extern char thread_begin[], fork_child_begin[];
struct thread *switch_stack(struct thread *prev, u32 *prev_esp, u32 next_esp);
NORETURN void enter_user(struct trapframe *tf);

// What switch_stack pops in a thread that has not run yet.
struct new_stack {
    u32 edi, esi, ebx, ebp;
    const char *begin;
    void (*entry)(void *arg); // for thread_begin
    void *arg;
};

NOTRACE struct trapframe *thread_trapframe(struct thread *t)
{
    return (struct trapframe *)((char *)thread_base(t)->kstack + KSTACK_SIZE) -
           1;
}

static struct new_stack *new_stack(struct thread *t, const char *begin)
{
    struct new_stack *s = (struct new_stack *)thread_trapframe(t) - 1;
    memset(s, 0, sizeof(*s));
    s->begin = begin;
    thread_base(t)->arch.esp = (u32)s;
    return s;
}

void arch_thread_init(struct thread *t, void (*entry)(void *), void *arg)
{
    assert(t != current);
    memset(&thread_base(t)->arch, 0, sizeof(thread_base(t)->arch));
    struct new_stack *s = new_stack(t, thread_begin);
    s->entry = entry;
    s->arg = arg;
}

int arch_thread_fork(struct thread *child, const struct trapframe *tf)
{
    assert(child != current);
    int err = fpu_fork(child);
    if (err)
        return err;
    struct trapframe *copy = thread_trapframe(child);
    *copy = *tf;
    copy->eax = 0;
    thread_base(child)->arch.gs = read_gs();
    memcpy(thread_base(child)->arch.tls, current_base()->arch.tls,
           sizeof(thread_base(child)->arch.tls));
    memcpy(thread_base(child)->arch.signals, current_base()->arch.signals,
           sizeof(thread_base(child)->arch.signals));
    thread_base(child)->arch.signal_count = current_base()->arch.signal_count;
    new_stack(child, fork_child_begin);
    return 0;
}

// Called from entry.S: a fork's child after its first switch; interrupts off.
NORETURN void fork_child_return(void);
void fork_child_return(void)
{
    arch_enter_user(thread_trapframe(current));
}

void arch_thread_destroy(struct thread *t)
{
    assert(t != current);
    fpu_discard(t);
}

u32 read_gs(void)
{
    u32 selector;
    __asm__ volatile("movl %%gs, %0" : "=r"(selector));
    return selector & 0xffff;
}

// A selector that the tables do not allow becomes the null selector.
void write_gs(u32 selector)
{
    __asm__ volatile("1:\tmovl %0, %%gs\n\t"
                     ".pushsection .text.fixup, \"ax\"\n"
                     "2:\txorl %0, %0\n\t"
                     "jmp 1b\n\t"
                     ".popsection\n\t"
                     ".pushsection .ex_table, \"a\"\n\t"
                     ".long 1b, 2b\n\t"
                     ".popsection"
                     : "+r"(selector));
}

static ALWAYS_INLINE void load_tls(struct arch_cpu *cpu,
                                   const struct arch_thread *t)
{
    for (u32 i = 0; i < GDT_TLS_COUNT; i++)
        cpu->gdt[GDT_TLS_FIRST + i] = t->tls[i];
}

NOTRACE struct thread *arch_switch(struct thread *prev, struct thread *next)
{
    struct arch_cpu *cpu = this_cpu()->arch;
    fpu_switch(prev, next);
    thread_base(prev)->arch.gs = read_gs();
    load_tls(cpu, &thread_base(next)->arch);
    // gs is reloaded even if the selector is unchanged: its TLS entry may
    // differ.
    if (thread_base(prev)->arch.gs | thread_base(next)->arch.gs)
        write_gs(thread_base(next)->arch.gs);
    cpu->tss.esp0 = (u32)thread_base(next)->kstack + KSTACK_SIZE;
    return switch_stack(prev, &thread_base(prev)->arch.esp,
                        thread_base(next)->arch.esp);
}

// Does what the end of a system call does: pending work, then the accounts.
void arch_enter_user(struct trapframe *tf)
{
    trap_leave(tf);
    if (branch_on(&call_tracing))
        call_trace_enter_user();
    enter_user(tf);
}

void arch_end_user(void)
{
    WRITE_ONCE(thread_trapframe(current)->cs, 0);
}

void arch_exec(struct trapframe *tf, u32 eip, u32 esp)
{
    struct thread *t = current;
    fpu_discard(t);
    WRITE_ONCE(thread_base(t)->arch.signal_count, 0);
    u32 flags = irq_save();
    memset(thread_base(t)->arch.tls, 0, sizeof(thread_base(t)->arch.tls));
    load_tls(this_cpu()->arch, &thread_base(t)->arch);
    write_gs(0);
    irq_restore(flags);
    *tf = (struct trapframe){
        .ds = USER_DS,
        .es = USER_DS,
        .vector = tf->vector,
        .error = tf->error,
        .eip = eip,
        .cs = USER_CS,
        .eflags = EFLAGS_IF,
        .esp = esp,
        .ss = USER_DS,
    };
}

void arch_set_tls(u32 index, u64 descriptor)
{
    assert(index < GDT_TLS_COUNT);
    u32 flags = irq_save();
    current_base()->arch.tls[index] = descriptor;
    load_tls(this_cpu()->arch, &current_base()->arch);
    write_gs(read_gs()); // gs may select this entry
    irq_restore(flags);
}

u64 arch_get_tls(u32 index)
{
    assert(index < GDT_TLS_COUNT);
    return current_base()->arch.tls[index];
}
