// x86 per-CPU state, and the interfaces between the files of arch/i386/cpu.
#pragma once

#include "arch/cpu.h"
#include "arch/trap.h"
#include <strobe/core_clock.h>

// Task state segment (SDM vol. 3, 8.2.1). The low halves hold selectors.
struct tss {
    u32 link;
    u32 esp0, ss0, esp1, ss1, esp2, ss2;
    u32 cr3, eip, eflags;
    u32 eax, ecx, edx, ebx, esp, ebp, esi, edi;
    u32 es, cs, ss, ds, fs, gs;
    u32 ldt;
    u16 trap, io_map;
};
_Static_assert(sizeof(struct tss) == 104 && offsetof(struct tss, cr3) == 28 &&
                   offsetof(struct tss, es) == 72 &&
                   offsetof(struct tss, io_map) == 102,
               "SDM vol. 3, figure 8-2");

#define DOUBLE_FAULT_STACK 6144u

struct arch_cpu {
    u64 gdt[GDT_ENTRIES]; // TLS entries: the running thread's
    struct tss tss;       // only esp0 changes after start-up
    struct tss double_fault_tss;
    u32 cr0;             // as loaded, TS clear
    u32 windows;         // windows in use (arch/i386/mm/memory.c)
    u32 nmis;            // unclaimed NMIs; written in NMI context
    u32 nmis_logged;     // how many of them have been logged
    bool deferred;       // work is pending for the end of an interrupt; marked
    bool measures_entry; // entry_cost.c raises spurious interrupts
    bool up;             // has reached ap_main
    bool stopped;        // has halted for smp_stop_others

    // smp_call.c: this CPU's request to other CPUs, one at a time, and those
    // that have not answered yet.
    void (*call_fn)(void *arg);
    void *call_arg;
    void (*call_meanwhile)(void *arg); // smp_call_others_while
    struct cpu_set call_pending;
    struct cpu_set call_from; // the CPUs with a request to this one

    u8 double_fault_stack[DOUBLE_FAULT_STACK] __attribute__((aligned(16)));
};

// gdt.c: builds `cpu`'s tables (cpu->arch is set) and loads the GDT. After it
// %fs works.
void gdt_init(struct cpu *cpu);
void idt_init(void); // once, on the boot CPU
// After it this CPU handles exceptions. The double fault handler uses
// kernel_pagetable as it is at the time of the call.
void idt_load(struct cpu *cpu);

// init.c: control registers of the calling CPU, according to cpu_features.
void cpu_init_control(void);
// Initialises the boot CPU's struct cpu. Runs before any other C code.
void cpu_init_boot(void);

// idle.c: once, on the boot CPU, after the command line is parsed.
void idle_init(void);
enum strobe_idle idle_reported(void);

// features.c
void features_detect(void);

// trap.c: the last steps before enter_user. It returns with interrupts off and
// the ledger's sequence counter odd (an update is in progress).
void trap_leave(struct trapframe *tf);
const char *exception_name(u32 vector);

// nmi.c: logs unclaimed NMIs. Interrupts off, not in an NMI.
void nmi_log_unclaimed(struct arch_cpu *a);
// Halts all other CPUs by NMI; smp_stopper names this CPU.
void nmi_stop_others(void);

// fpu.c: the FPU's part of a thread switch; interrupts off.
struct thread;
void fpu_init(void);
void fpu_store_one(void *to); // 80 bits of 1.0, before there are threads
void fpu_check_stores(void);  // fpu_check.c: at start-up, on one CPU
void fpu_switch(struct thread *prev, struct thread *next);
int fpu_fork(struct thread *child); // of current; 0 or -ENOMEM
void fpu_discard(struct thread *t); // current, or a thread that has exited
// #NM: the first use since the switch. False: no memory for the save area.
bool fpu_first_use(void);
// The SIGFPE code for #MF, #XM.
int fpu_error_code(u32 vector);

// smp_call.c: serves other CPUs' requests to this one; interrupts off.
void smp_call_service(void);
void smp_call_init(void);
// The CPU that is stopping all others, + 1; 0 while the machine runs.
extern u32 smp_stopper;
static ALWAYS_INLINE bool smp_stopping(void)
{
    return READ_ONCE(smp_stopper) != 0;
}

static ALWAYS_INLINE u32 read_cr2(void)
{
    u32 v;
    __asm__ volatile("movl %%cr2, %0" : "=r"(v));
    return v;
}
static ALWAYS_INLINE u32 read_cr4(void)
{
    u32 v;
    __asm__ volatile("movl %%cr4, %0" : "=r"(v));
    return v;
}
static ALWAYS_INLINE void write_cr4(u32 v)
{
    __asm__ volatile("movl %0, %%cr4" ::"r"(v) : "memory");
}
static ALWAYS_INLINE void write_cr0(u32 v)
{
    __asm__ volatile("movl %0, %%cr0" ::"r"(v) : "memory");
}

struct cpuid {
    u32 eax, ebx, ecx, edx;
};
static inline struct cpuid cpuid(u32 leaf, u32 subleaf)
{
    struct cpuid r;
    __asm__ volatile("cpuid"
                     : "=a"(r.eax), "=b"(r.ebx), "=c"(r.ecx), "=d"(r.edx)
                     : "a"(leaf), "c"(subleaf));
    return r;
}
// As EAX, EBX, ECX, EDX, for what is tested with models of CPUs.
static inline void cpuid_words(u32 leaf, u32 subleaf, u32 words[4])
{
    struct cpuid r = cpuid(leaf, subleaf);
    words[0] = r.eax;
    words[1] = r.ebx;
    words[2] = r.ecx;
    words[3] = r.edx;
}
