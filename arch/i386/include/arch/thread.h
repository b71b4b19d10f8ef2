// The machine-dependent part of a thread.
#pragma once

#include "arch/trap.h"
#include "lib/types.h"

struct thread;

#ifdef KASAN // frames with redzones are larger
#define KSTACK_SIZE (8 * 4096u)
#else
#define KSTACK_SIZE (4 * 4096u)
#endif

// A signal frame whose handler has not returned.
struct signal_frame {
    u32 at;      // user address of the handler's return address slot
    u32 context; // user address of its struct sigcontext
    // The return address. In memory, the next signal's frame may overwrite it
    // once the handler has returned.
    u32 restorer;
};
#define SIGNAL_FRAMES_MAX 4

struct arch_thread {
    u32 esp; // saved by arch_switch while the thread is not running
    u32 gs;  // user's %gs selector, valid while not running
    u64 tls[GDT_TLS_COUNT];
    void *fpu;     // FXSAVE/FSAVE area (slab), NULL until the first FPU use
    bool fpu_live; // this CPU's FPU registers are this thread's
    // Innermost last. Written by the thread, read by samples of it. A frame
    // left by longjmp stays until the next one on its stack.
    struct signal_frame signals[SIGNAL_FRAMES_MAX];
    u32 signal_count;
};

// The lowest used kernel stack address of a thread that is not running.
static inline u32 arch_stack_pointer(const struct arch_thread *t)
{
    return t->esp;
}

// Prepares a new thread so that the first switch to it calls entry(arg) with
// interrupts on and preemption enabled; entry must not return.
void arch_thread_init(struct thread *t, void (*entry)(void *), void *arg);
// Prepares a fork's child: it returns to user mode with a copy of `tf`, eax 0.
// Copies the parent's FPU state, TLS and gs. Only for `current` as parent.
// 0 or -ENOMEM.
int arch_thread_fork(struct thread *child, const struct trapframe *tf);
// Frees resources of the arch part.
void arch_thread_destroy(struct thread *t);

// Switches kernel stacks and all user-visible CPU state (FPU, TLS, gs, esp0).
// Interrupts off. Returns when `prev` is switched back to; the value is the
// thread that ran before it on this CPU, whose switch must be finished.
struct thread *arch_switch(struct thread *prev, struct thread *next);

// The user registers of a thread, at the top of its kernel stack.
struct trapframe *thread_trapframe(struct thread *t);

// From here on, down to arch_exec if there is one, the current thread has no
// user mode: its program is being discarded, and samples do not unwind it.
void arch_end_user(void);
// Fresh user state for execve: clears FPU, TLS; sets eip and esp in `tf`.
void arch_exec(struct trapframe *tf, u32 eip, u32 esp);
// Returns to user mode with the registers in the current thread's frame (also
// init's first entry, from a kernel thread). Never returns.
NORETURN void arch_enter_user(struct trapframe *tf);

// FPU state of the current thread in a signal frame: FXSAVE's image, or FSAVE's
// where the CPU has no FXSR. May sleep. 0 or -EFAULT.
#define FPU_AREA_SIZE 512
#define FSAVE_SIZE 108
// The thread has used the FPU; `dst` is a multiple of 16.
int fpu_save_to_user(u32 dst) MUST_CHECK;
// 0, -EFAULT or -ENOMEM. After an error the registers are unspecified.
int fpu_restore_from_user(u32 src) MUST_CHECK;

// set_thread_area for the current thread: desc = the two GDT words.
void arch_set_tls(u32 index, u64 descriptor);
u64 arch_get_tls(u32 index);
u32 read_gs(void);
void write_gs(u32 selector);

// Called first on a new thread's stack, with interrupts off: releases the
// switch's lock and completes the switch from `prev`. The caller enables
// interrupts.
UPCALL void sched_switch_finished(struct thread *prev);
