// Signal frames in Linux/i386's layout (asm/sigcontext.h, asm/ucontext.h), on
// which C libraries and programs rely.

#include "arch/sigframe.h"
#include "arch/mmu.h"
#include "arch/thread.h"
#include "arch/trap.h"
#include "arch/vdso.h"

#include "arch/i386/cpu/sigcontext.h"

#include "kernel/base/errno.h"
#include "kernel/base/signal.h"
#include "kernel/base/thread.h"
#include "kernel/mm/aspace.h"
#include "lib/string.h"

// The vDSO's address in the current program. Another thread may be moving it.
static u32 vdso_image(void)
{
    return READ_ONCE(current_base()->aspace->vdso);
}

struct stack_user {
    u32 sp;
    s32 flags;
    u32 size;
};
#define SS_ONSTACK 1
#define SS_DISABLE 2

struct siginfo_user {
    s32 signo, err, code;
    u32 fields[29];
};
_Static_assert(sizeof(struct siginfo_user) == 128, "SI_MAX_SIZE");

struct ucontext {
    u32 flags, link;
    struct stack_user stack;
    struct sigcontext context;
    sigset_t mask;
};
_Static_assert(offsetof(struct ucontext, context) == 20 &&
                   offsetof(struct ucontext, mask) == 108,
               "asm/ucontext.h");

struct frame_plain {
    u32 restorer;
    s32 sig;
    struct sigcontext context;
};
_Static_assert(offsetof(struct frame_plain, context) == 8, "struct sigframe");
// Between the two is room for an FSAVE image, unused; Linux keeps it so that
// the offset of what follows does not change.
#define PLAIN_END_OFFSET (sizeof(struct frame_plain) + 112)
struct frame_plain_end {
    u32 mask_high;
    u32 code[2];
};
#define PLAIN_SIZE (PLAIN_END_OFFSET + sizeof(struct frame_plain_end))

struct frame_rt {
    u32 restorer;
    s32 sig;
    u32 info_addr, context_addr;
    struct siginfo_user info;
    struct ucontext ucontext;
    u32 code[2];
};
_Static_assert(offsetof(struct frame_rt, info) == 16 &&
                   offsetof(struct frame_rt, ucontext) == 144,
               "struct rt_sigframe");

// What sigcontext's fpstate points to: the legacy environment with Linux's mark
// that an FXSAVE image follows (magic 0), or the plain FSAVE image.
struct fpstate {
    u32 environment[7];
    u8 st[80];
    u16 status, magic;
    u8 fxsave[FPU_AREA_SIZE];
};
_Static_assert(offsetof(struct fpstate, status) == FSAVE_SIZE &&
                   offsetof(struct fpstate, fxsave) == 112,
               "asm/sigcontext.h");
#define FPSTATE_FXSAVE 0u
#define FPSTATE_PLAIN 0xffffu
_Static_assert(FPSTATE_FXSAVE == 0, "what save_fpu writes");

#define EFLAGS_USER 0x40dd5u // AC OF DF TF SF ZF AF PF CF

NOTRACE bool on_altstack(u32 esp)
{
    struct thread_base *t = current_base();
    u32 base = READ_ONCE(t->altstack_base), size = READ_ONCE(t->altstack_size);
    return size && esp - base <= size && esp > base;
}

void set_altstack(u32 base, u32 size)
{
    WRITE_ONCE(current_base()->altstack_base, base);
    WRITE_ONCE(current_base()->altstack_size, size);
}

static void expand_info(struct siginfo_user *u, const struct siginfo *info)
{
    memset(u, 0, sizeof(*u));
    u->signo = info->signo;
    u->err = info->err;
    u->code = info->code;
    u->fields[0] = info->pid_or_addr;
    u->fields[1] = info->uid;
    u->fields[2] = (u32)info->status;
}

int siginfo_to_user(u32 addr, const struct siginfo *info)
{
    struct siginfo_user u;
    expand_info(&u, info);
    return copy_to_user(addr, &u, sizeof(u));
}

// Saves the FPU state to user address `addr` if the thread has used the FPU;
// *out is `addr`, else 0.
static ALWAYS_INLINE int save_fpu(u32 addr, u32 *out)
{
    *out = 0;
    if (!current_base()->arch.fpu)
        return 0;
    *out = addr;
    if (likely(cpu_features.fxsr)) {
        if (zero_user(addr, offsetof(struct fpstate, fxsave)))
            return -EFAULT;
        return fpu_save_to_user(addr + offsetof(struct fpstate, fxsave));
    }
    if (fpu_save_to_user(addr))
        return -EFAULT;
    return user_store_u32(addr + FSAVE_SIZE, FPSTATE_PLAIN << 16);
}

static int restore_fpu(u32 addr)
{
    u32 status_and_magic;
    if (!addr)
        return 0;
    if (user_load_u32(addr + FSAVE_SIZE, &status_and_magic))
        return -EFAULT;
    if (status_and_magic >> 16 == FPSTATE_FXSAVE)
        addr += offsetof(struct fpstate, fxsave);
    return fpu_restore_from_user(addr);
}

static void save_context(struct sigcontext *c, const struct trapframe *tf,
                         sigset_t mask, u32 fpstate)
{
    *c = (struct sigcontext){
        .gs = read_gs(),
        .fs = tf->fs & 0xffff,
        .es = tf->es & 0xffff,
        .ds = tf->ds & 0xffff,
        .edi = tf->edi,
        .esi = tf->esi,
        .ebp = tf->ebp,
        .esp = tf->esp,
        .ebx = tf->ebx,
        .edx = tf->edx,
        .ecx = tf->ecx,
        .eax = tf->eax,
        .err = tf->error,
        .eip = tf->eip,
        .cs = tf->cs & 0xffff,
        .eflags = tf->eflags,
        .esp_at_signal = tf->esp,
        .ss = tf->ss & 0xffff,
        .fpstate = fpstate,
        .oldmask = (u32)mask,
    };
    c->trapno = tf->vector;
}

static u32 frame_top(const struct trapframe *tf,
                     const struct sigaction_k *action)
{
    struct thread_base *t = current_base();
    if ((action->flags & SA_ONSTACK) && t->altstack_size &&
        !on_altstack(tf->esp))
        return t->altstack_base + t->altstack_size;
    return tf->esp;
}

// popl %eax; movl $119, %eax; int $0x80. Never executed, but debuggers
// recognise a signal frame by it; handlers without a restorer return to the
// vDSO's.
static const u32 return_plain[2] = { 0x0077b858, 0x80cd0000 };
// movl $173, %eax; int $0x80.
static const u32 return_rt[2] = { 0x0000adb8, 0x0080cd00 };

// Records the frame for samples of this thread. The count is written last, so
// an NMI sees complete entries only.
static ALWAYS_INLINE void note_frame(u32 at, u32 context, u32 restorer)
{
    struct arch_thread *t = &current_base()->arch;
    u32 n = t->signal_count;
    // Frames at or below `at` were left by longjmp, unless `at` is on the
    // alternate stack.
    while (n && t->signals[n - 1].at <= at && !on_altstack(at))
        n--;
    WRITE_ONCE(t->signal_count, n);
    if (n == SIGNAL_FRAMES_MAX) {
        memmove(t->signals, t->signals + 1, --n * sizeof(t->signals[0]));
        WRITE_ONCE(t->signal_count, n);
    }
    t->signals[n] = (struct signal_frame){ at, context, restorer };
    barrier();
    WRITE_ONCE(t->signal_count, n + 1);
}

// Drops the frame at `at` and all frames nested in it.
static void forget_frame(u32 at)
{
    struct arch_thread *t = &current_base()->arch;
    for (u32 n = t->signal_count; n-- > 0;) {
        if (t->signals[n].at == at)
            WRITE_ONCE(t->signal_count, n);
    }
}

// While the registers change, cs is 0: samples then do not unwind user mode.
static void registers_change(struct trapframe *tf)
{
    WRITE_ONCE(tf->cs, 0);
    barrier();
}

static void registers_changed(struct trapframe *tf, u32 cs)
{
    barrier();
    WRITE_ONCE(tf->cs, cs);
}

static void enter_handler(struct trapframe *tf,
                          const struct sigaction_k *action, u32 esp)
{
    registers_change(tf);
    tf->esp = esp;
    tf->eip = action->handler;
    tf->ds = tf->es = tf->ss = USER_DS;
    tf->eflags &= ~(EFLAGS_TF | EFLAGS_DF);
    registers_changed(tf, USER_CS);
}

static int push_plain(struct trapframe *tf, int sig,
                      const struct sigaction_k *action, sigset_t mask)
{
    u32 fp = (frame_top(tf, action) - sizeof(struct fpstate)) & ~15u;
    u32 addr = ((fp - PLAIN_SIZE) & ~15u) - 4;
    struct frame_plain f;
    const struct frame_plain_end end = {
        (u32)(mask >> 32),
        { return_plain[0], return_plain[1] },
    };
    u32 fpstate;
    if (save_fpu(fp, &fpstate))
        return -EFAULT;
    f.sig = sig;
    f.restorer = action->flags & SA_RESTORER
                     ? action->restorer
                     : vdso_address(vdso_image(), VDSO_SIGRETURN);
    save_context(&f.context, tf, mask, fpstate);
    if (copy_to_user(addr, &f, sizeof(f)) ||
        copy_to_user(addr + PLAIN_END_OFFSET, &end, sizeof(end)))
        return -EFAULT;
    note_frame(addr, addr + offsetof(struct frame_plain, context), f.restorer);
    enter_handler(tf, action, addr);
    tf->eax = (u32)sig;
    tf->edx = tf->ecx = 0;
    return 0;
}

static int push_rt(struct trapframe *tf, int sig, const struct siginfo *info,
                   const struct sigaction_k *action, sigset_t mask)
{
    u32 fp = (frame_top(tf, action) - sizeof(struct fpstate)) & ~15u;
    struct frame_rt f;
    u32 addr = ((fp - sizeof(f)) & ~15u) - 4;
    u32 fpstate;
    if (save_fpu(fp, &fpstate))
        return -EFAULT;
    struct thread_base *t = current_base();
    f.sig = sig;
    f.restorer = action->flags & SA_RESTORER
                     ? action->restorer
                     : vdso_address(vdso_image(), VDSO_RT_SIGRETURN);
    f.info_addr = addr + offsetof(struct frame_rt, info);
    f.context_addr = addr + offsetof(struct frame_rt, ucontext);
    expand_info(&f.info, info);
    f.ucontext.flags = f.ucontext.link = 0;
    f.ucontext.stack = (struct stack_user){
        t->altstack_base,
        !t->altstack_size      ? SS_DISABLE
        : on_altstack(tf->esp) ? SS_ONSTACK
                               : 0,
        t->altstack_size,
    };
    f.ucontext.mask = mask;
    f.code[0] = return_rt[0];
    f.code[1] = return_rt[1];
    save_context(&f.ucontext.context, tf, mask, fpstate);
    if (copy_to_user(addr, &f, sizeof(f)))
        return -EFAULT;
    note_frame(addr, f.context_addr + offsetof(struct ucontext, context),
               f.restorer);
    enter_handler(tf, action, addr);
    tf->eax = (u32)sig;
    tf->edx = f.info_addr;
    tf->ecx = f.context_addr;
    return 0;
}

int sigframe_push(struct trapframe *tf, int sig, const struct siginfo *info,
                  const struct sigaction_k *action, sigset_t restore)
{
    if (action->flags & SA_SIGINFO)
        return push_rt(tf, sig, info, action, restore);
    return push_plain(tf, sig, action, restore);
}

// Restores the registers from the context of the signal frame at `at`.
static ALWAYS_INLINE int restore_context(struct trapframe *tf,
                                         const struct sigcontext *c, u32 at)
{
    registers_change(tf);
    tf->edi = c->edi;
    tf->esi = c->esi;
    tf->ebp = c->ebp;
    tf->esp = c->esp;
    tf->ebx = c->ebx;
    tf->edx = c->edx;
    tf->ecx = c->ecx;
    tf->eax = c->eax;
    tf->eip = c->eip;
    tf->eflags = (tf->eflags & ~EFLAGS_USER) | (c->eflags & EFLAGS_USER);
    // cs and ss must be user selectors (RPL 3). Selectors that do not exist
    // fault on the return to user mode, which kills the task.
    u32 cs = (c->cs & 0xffff) | 3;
    tf->ss = (c->ss & 0xffff) | 3;
    tf->ds = c->ds & 0xffff;
    tf->es = c->es & 0xffff;
    tf->fs = c->fs & 0xffff;
    write_gs(c->gs & 0xffff);
    forget_frame(at);
    registers_changed(tf, cs);
    return restore_fpu(c->fpstate);
}

int sigframe_pop(struct trapframe *tf, bool rt)
{
    // The handler's `ret` popped the restorer's address; a plain frame's
    // restorer has popped the signal number as well.
    if (rt) {
        struct ucontext u;
        u32 addr = tf->esp - 4;
        if (copy_from_user(&u, addr + offsetof(struct frame_rt, ucontext),
                           sizeof(u)))
            return -EFAULT;
        signal_restore_mask(u.mask);
        if (!on_altstack(u.context.esp)) {
            bool off = u.stack.flags & SS_DISABLE;
            set_altstack(off ? 0 : u.stack.sp, off ? 0 : u.stack.size);
        }
        return restore_context(tf, &u.context, addr);
    }
    struct sigcontext context;
    u32 addr = tf->esp - 8, mask_high;
    if (copy_from_user(&context, addr + offsetof(struct frame_plain, context),
                       sizeof(context)) ||
        user_load_u32(addr + PLAIN_END_OFFSET +
                          offsetof(struct frame_plain_end, mask_high),
                      &mask_high))
        return -EFAULT;
    signal_restore_mask((u64)mask_high << 32 | context.oldmask);
    return restore_context(tf, &context, addr);
}
