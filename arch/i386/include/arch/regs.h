// The trap frame: what the CPU and the entry code push on the kernel stack, and
// its accessors for the kernel. Code outside of arch/ does not name its members
// (checked by tools/build/layers).
#pragma once

#include "lib/types.h"

// In the order of arch/i386/cpu/entry.S. esp and ss are present only if user
// mode was interrupted (trap_from_user).
struct trapframe {
    u32 ebx, ecx, edx, esi, edi, ebp, eax;
    u32 ds, es, fs;
    u32 vector; // for a system call: its number (for restarting)
    u32 error;
    u32 eip, cs, eflags;
    u32 esp, ss;
};
_Static_assert(offsetof(struct trapframe, ds) == 28 &&
                   offsetof(struct trapframe, vector) == 40 &&
                   offsetof(struct trapframe, eip) == 48 &&
                   sizeof(struct trapframe) == 68,
               "entry.S");

#define KERNEL_CS 0x60
#define KERNEL_DS 0x68
#define USER_CS 0x73
#define USER_DS 0x7b
#define PERCPU_SEL 0xd8
// Its limit is the CPU's number, for LSL in programs: Linux's place.
#define CPU_NUMBER_SEL 0xe3
#define TSS_SEL 0x80
#define DOUBLE_FAULT_SEL 0xf8
#define GDT_TLS_FIRST 6 // three entries for set_thread_area: 6, 7, 8
#define GDT_TLS_COUNT 3
#define GDT_ENTRIES 32
_Static_assert(DOUBLE_FAULT_SEL / 8 < GDT_ENTRIES &&
                   PERCPU_SEL / 8 < GDT_ENTRIES &&
                   CPU_NUMBER_SEL / 8 < GDT_ENTRIES,
               "selectors of the GDT");
_Static_assert((KERNEL_CS & 3) == 0 && (KERNEL_DS & 3) == 0 &&
                   (USER_CS & 3) == 3 && (USER_DS & 3) == 3,
               "privilege levels");

#define EFLAGS_IF 0x200
#define EFLAGS_TF 0x100
#define EFLAGS_DF 0x400

#define VECTOR_NMI 2
#define VECTOR_DOUBLE_FAULT 8
#define VECTOR_PAGE_FAULT 14
#define VECTOR_SYSCALL 0x80

// The address at which the interrupted code continues.
static ALWAYS_INLINE u32 trap_pc(const struct trapframe *tf)
{
    return tf->eip;
}
// The stack pointer of the kernel's code that an interrupt has interrupted.
static ALWAYS_INLINE u32 trap_kernel_stack(const struct trapframe *tf)
{
    return (u32)&tf->esp; // the CPU pushes no more
}
// That of a context from unwind_caller() or unwind_interrupted().
static ALWAYS_INLINE u32 trap_stack(const struct trapframe *tf)
{
    return tf->esp;
}
// Its frame pointer, if it keeps one.
static ALWAYS_INLINE u32 trap_frame_pointer(const struct trapframe *tf)
{
    return tf->ebp;
}
static ALWAYS_INLINE bool trap_from_user(const struct trapframe *tf)
{
    return tf->cs & 3;
}
// Whether interrupts were on in the interrupted code.
static ALWAYS_INLINE bool trap_irqs_on(const struct trapframe *tf)
{
    return tf->eflags & EFLAGS_IF;
}
// VECTOR_..., or another exception or interrupt. Not for a system call.
static ALWAYS_INLINE u32 trap_vector(const struct trapframe *tf)
{
    return tf->vector;
}

// --- accessors for user frames ----------------------------------------------

static ALWAYS_INLINE u32 trap_user_sp(const struct trapframe *tf)
{
    return tf->esp;
}
static ALWAYS_INLINE void trap_set_user_sp(struct trapframe *tf, u32 sp)
{
    tf->esp = sp;
}

// --- accessors for system call frames ---------------------------------------

// `error` in a system call's frame; no exception has this value.
#define TRAP_SYSCALL_MARK 0xffffffffu
#define TRAP_CALL_BYTES 2 // int $0x80

static ALWAYS_INLINE bool trap_is_syscall(const struct trapframe *tf)
{
    return tf->error == TRAP_SYSCALL_MARK;
}
// The call number, as passed by the program.
static ALWAYS_INLINE u32 trap_call(const struct trapframe *tf)
{
    return tf->vector;
}
static ALWAYS_INLINE u32 trap_result(const struct trapframe *tf)
{
    return tf->eax;
}
static ALWAYS_INLINE void trap_set_result(struct trapframe *tf, u32 result)
{
    tf->eax = result;
}
// Calls the handler with all six arguments of the call; it uses as many as it
// has, since the caller clears the stack (System V ABI for i386, "Function
// Calling Sequence"). It gets copies, since the callee may overwrite its
// arguments. (In assembly getpid would take 135 instructions, not 136.)
typedef s32 (*trap_call_fn)(u32 a, u32 b, u32 c, u32 d, u32 e, u32 f);
static ALWAYS_INLINE s32 trap_invoke(const struct trapframe *tf,
                                     trap_call_fn handler)
{
    return handler(tf->ebx, tf->ecx, tf->edx, tf->esi, tf->edi, tf->ebp);
}
// Makes the program repeat the call `number` when it continues.
static inline void trap_restart_call(struct trapframe *tf, u32 number)
{
    tf->eax = number;
    tf->eip -= TRAP_CALL_BYTES;
}

// Prints all registers, including this CPU's control registers, to the
// consoles. For panic: takes no lock.
void trap_print_registers(const struct trapframe *tf);
