// The FPU and SSE registers of threads.
//
// Eager switch after first use: a thread that has used the FPU has a save area,
// and its registers are saved and loaded at each switch, so they never remain
// on a CPU that it has left. A thread that has not costs nothing: CR0.TS turns
// its first use into an exception (#NM). TS is clear exactly while the running
// thread is `fpu_live`. The kernel itself uses general registers only.
//
// `fpu_live` is accessed with interrupts off only: a switch away from the
// thread clears it and the switch back sets it. Code that a switch may
// interrupt tests whether its thread has a save area instead. Only the thread
// itself changes that, and the running thread is live exactly if it has one.

#include "arch/i386/cpu/arch_cpu.h"
#include "arch/i386/cpu/registers.h"
#include "arch/mmu.h"
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/base/thread.h"
#include "kernel/mm/heap.h"
#include "lib/string.h"

// FXSAVE's layout (SDM vol. 1, 10.5.1); FSAVE uses the first 108 bytes.
struct fpu_area {
    u32 head[6];
    u32 mxcsr, mxcsr_mask;
    u8 registers[480];
} __attribute__((aligned(16)));
_Static_assert(sizeof(struct fpu_area) == FPU_AREA_SIZE, "FXSAVE area");

#define MXCSR_DEFAULT 0x1f80u
#define MXCSR_MASK_DEFAULT 0xffbfu // used where the CPU stores a mask of 0
#define X87_REGISTERS 128u         // bytes; the XMM registers follow

#define VECTOR_FPU_ERROR 16u
#define FPE_FLTDIV 3
#define FPE_FLTOVF 4
#define FPE_FLTUND 5
#define FPE_FLTRES 6
#define FPE_FLTINV 7

SLAB_CACHE(fpu_cache, struct fpu_area);
static struct fpu_area fpu_initial;
static u32 mxcsr_mask;

static ALWAYS_INLINE void clear_ts(void)
{
    __asm__ volatile("clts" ::: "memory");
}

static ALWAYS_INLINE void set_ts(void)
{
    write_cr0(this_cpu()->arch->cr0 | ASM_CR0_TS);
}

// FSAVE also reinitialises the FPU: the registers are lost.
static ALWAYS_INLINE void save(struct fpu_area *a)
{
    if (likely(cpu_features.fxsr))
        __asm__ volatile("fxsave %0" : "=m"(*a));
    else
        __asm__ volatile("fnsave %0" : "=m"(*a));
}

// FNCLEX first: FRSTOR would raise an FPU error that the previous owner left
// pending.
static ALWAYS_INLINE void load(const struct fpu_area *a)
{
    if (likely(cpu_features.fxsr))
        __asm__ volatile("fxrstor %0" ::"m"(*a));
    else
        __asm__ volatile("fnclex; frstor %0" ::"m"(*a));
}

void fpu_init(void)
{
    clear_ts();
    __asm__ volatile("fninit");
    save(&fpu_initial);
    if (cpu_features.fxsr) {
        mxcsr_mask = fpu_initial.mxcsr_mask;
        if (!mxcsr_mask)
            mxcsr_mask = MXCSR_MASK_DEFAULT;
        memset(fpu_initial.registers + X87_REGISTERS, 0,
               sizeof(fpu_initial.registers) - X87_REGISTERS);
        fpu_initial.mxcsr = MXCSR_DEFAULT;
    }
    set_ts();
}

void fpu_store_one(void *to)
{
    clear_ts();
    __asm__ volatile("fld1; fstpt (%0)" ::"r"(to) : "memory");
    set_ts();
}

NOTRACE void fpu_switch(struct thread *prev, struct thread *next)
{
    bool was_live = thread_base(prev)->arch.fpu_live;
    if (was_live) {
        save(thread_base(prev)->arch.fpu);
        thread_base(prev)->arch.fpu_live = false;
    }
    if (thread_base(next)->arch.fpu) {
        if (!was_live)
            clear_ts();
        load(thread_base(next)->arch.fpu);
        thread_base(next)->arch.fpu_live = true;
    } else if (was_live) {
        set_ts();
    }
}

// Loads `from` into the registers for current, which gets a save area if it has
// none.
static int install(const struct fpu_area *from)
{
    struct arch_thread *a = &current_base()->arch;
    if (!a->fpu) {
        a->fpu = slab_alloc(&fpu_cache);
        if (!a->fpu)
            return -ENOMEM;
    }
    clear_ts();
    load(from);
    a->fpu_live = true;
    return 0;
}

bool fpu_first_use(void)
{
    return install(&fpu_initial) == 0;
}

// Brings current's save area up to date.
static void sync(void)
{
    struct arch_thread *a = &current_base()->arch;
    if (!a->fpu_live)
        return;
    save(a->fpu);
    if (!cpu_features.fxsr)
        load(a->fpu);
}

int fpu_fork(struct thread *child)
{
    assert(child != current);
    thread_base(child)->arch.fpu = NULL;
    thread_base(child)->arch.fpu_live = false;
    if (!current_base()->arch.fpu)
        return 0;
    struct fpu_area *copy = slab_alloc(&fpu_cache);
    if (!copy)
        return -ENOMEM;
    u32 flags = irq_save();
    sync();
    irq_restore(flags);
    memcpy(copy, current_base()->arch.fpu, sizeof(*copy));
    thread_base(child)->arch.fpu = copy;
    return 0;
}

void fpu_discard(struct thread *t)
{
    u32 flags = irq_save();
    void *area = thread_base(t)->arch.fpu;
    thread_base(t)->arch.fpu = NULL;
    if (thread_base(t)->arch.fpu_live) {
        assert(t == current);
        thread_base(t)->arch.fpu_live = false;
        set_ts();
    }
    irq_restore(flags);
    if (area)
        slab_free(&fpu_cache, area);
}

int fpu_save_to_user(u32 dst)
{
    assert_checked(current_base()->arch.fpu && !(dst % 16));
    if (likely(cpu_features.fxsr))
        return fxsave_to_user(dst);
    u32 flags = irq_save();
    sync();
    irq_restore(flags);
    return copy_to_user(dst, current_base()->arch.fpu, FSAVE_SIZE);
}

// Restores through a kernel copy, which works where FXRSTOR from user memory
// failed.
static NOINLINE int restore_copy(u32 src)
{
    struct fpu_area area;
    size_t size = cpu_features.fxsr ? FPU_AREA_SIZE : FSAVE_SIZE;
    if (copy_from_user(&area, src, size))
        return -EFAULT;
    if (cpu_features.fxsr)
        area.mxcsr &= mxcsr_mask;
    u32 flags = irq_save();
    int err = install(&area);
    irq_restore(flags);
    return err;
}

int fpu_restore_from_user(u32 src)
{
    if (likely(cpu_features.fxsr && current_base()->arch.fpu) &&
        likely(!fxrstor_from_user(src)))
        return 0;
    return restore_copy(src);
}

int fpu_error_code(u32 vector)
{
    u32 raised;
    if (vector == VECTOR_FPU_ERROR) {
        u16 control, status;
        __asm__ volatile("fnstcw %0" : "=m"(control));
        __asm__ volatile("fnstsw %0" : "=m"(status));
        raised = status & ~control;
    } else {
        u32 mxcsr;
        __asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
        raised = mxcsr & ~(mxcsr >> 7);
    }
    if (raised & 0x01)
        return FPE_FLTINV;
    if (raised & 0x04)
        return FPE_FLTDIV;
    if (raised & 0x08)
        return FPE_FLTOVF;
    if (raised & 0x12) // underflow, denormal operand
        return FPE_FLTUND;
    return FPE_FLTRES;
}
