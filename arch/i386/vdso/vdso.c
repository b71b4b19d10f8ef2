// The vDSO: clock reads in user mode. A small ELF shared object that the kernel
// maps into every program, after the time page.
//
// It is position-independent and has no data of its own. If the page does not
// have the answer (it is being changed, the timecounter is not the TSC, the
// line is out of date, or the request is not covered), it makes the system
// call. So it needs no retry loop. A bad pointer raises SIGSEGV here, where the
// kernel returns EFAULT.
#include "kernel/time/time_page.h"

#define EXPORT __attribute__((visibility("default")))

// System call numbers.
enum {
    SYS_TIME = 13,
    SYS_GETTIMEOFDAY = 78,
    SYS_CLOCK_GETTIME = 265,
    SYS_CLOCK_GETRES = 266,
    SYS_CLOCK_GETTIME64 = 403
};

// glibc expects these in every vDSO: a system call entry (AT_SYSINFO; the usual
// interrupt), and return code for signal handlers without a restorer. Debuggers
// and unwinders recognise a signal frame by the names and bytes of the latter,
// so these have no call frame information. The kernel knows the offsets
// (arch/vdso.h).
__asm__(".text\n"
        ".balign 16\n"
        ".globl __kernel_vsyscall\n"
        ".type __kernel_vsyscall, @function\n"
        "__kernel_vsyscall:\n\t"
        ".cfi_startproc\n\t"
        "int $0x80\n\t"
        "ret\n\t"
        ".cfi_endproc\n"
        ".size __kernel_vsyscall, . - __kernel_vsyscall\n"
        ".balign 16\n"
        ".globl __kernel_sigreturn\n"
        ".type __kernel_sigreturn, @function\n"
        "__kernel_sigreturn:\n\t"
        "popl %eax\n\t"
        "movl $119, %eax\n\t"
        "int $0x80\n"
        ".size __kernel_sigreturn, . - __kernel_sigreturn\n"
        ".balign 16\n"
        ".globl __kernel_rt_sigreturn\n"
        ".type __kernel_rt_sigreturn, @function\n"
        "__kernel_rt_sigreturn:\n\t"
        "movl $173, %eax\n\t"
        "int $0x80\n"
        ".size __kernel_rt_sigreturn, . - __kernel_rt_sigreturn\n"
        ".balign 16\n"
        ".type get_pc_thunk, @function\n"
        "get_pc_thunk:\n\t"
        ".cfi_startproc\n\t"
        "movl (%esp), %edi\n\t"
        "ret\n\t"
        ".cfi_endproc\n"
        ".size get_pc_thunk, . - get_pc_thunk\n");

struct timespec32 {
    s32 sec, nsec;
};
struct timespec64 {
    s64 sec;
    s32 nsec, pad;
};
struct timeval32 {
    s32 sec, usec;
};

struct moment {
    u64 sec;
    u32 nsec;
};

static ALWAYS_INLINE int ask_kernel(u32 number, u32 a, void *b)
{
    int result;
    __asm__ volatile("int $0x80"
                     : "=a"(result)
                     : "0"(number), "b"(a), "c"(b)
                     : "memory");
    return result;
}

// Address of the time page, the page before this object (vdso.lds). A call that
// never returned (call 1f; 1: popl) would stay in the CPU's stack of recorded
// calls (profile -g=lbr), and its prediction of returns would be wrong. In EDI,
// where the page stays for as long as it is needed.
static ALWAYS_INLINE const struct time_page *the_page(void)
{
    const struct time_page *page;
    __asm__("call get_pc_thunk\n"
            "1:\taddl $time_page - 1b, %0"
            : "=D"(page)
            :
            : "cc");
    return page;
}

#define NS 1000000000u

// False: the kernel must be asked.
static ALWAYS_INLINE bool read_clock(u32 clock, struct moment *m)
{
    const struct time_page *page = the_page();
    u32 gen = seqcount_peek(&page->gen);
    if (unlikely(gen & (TIME_BUSY | TIME_KERNEL) || clock >= TIME_CLOCKS))
        return false;
    const struct time_line *line = time_line(time_hands(page, gen), clock);
    if (unlikely(!time_nsec(line, &m->nsec)))
        return false;
    m->sec = READ_ONCE(line->sec);
    // seqcount_read_retry, without a register for what is read.
    if (unlikely(!word_is(&page->gen.value, gen)))
        return false;
    for (; m->nsec >= NS; m->nsec -= NS)
        m->sec++;
    return true;
}

EXPORT int __vdso_clock_gettime(u32 clock, struct timespec32 *t);
EXPORT int __vdso_clock_gettime64(u32 clock, struct timespec64 *t);
EXPORT int __vdso_clock_getres(u32 clock, struct timespec32 *t);
EXPORT int __vdso_gettimeofday(struct timeval32 *t, void *zone);
EXPORT s32 __vdso_time(s32 *t);

int __vdso_clock_gettime(u32 clock, struct timespec32 *t)
{
    struct moment m;
    if (unlikely(!read_clock(clock, &m)))
        return ask_kernel(SYS_CLOCK_GETTIME, clock, t);
    t->sec = (s32)m.sec;
    t->nsec = (s32)m.nsec;
    return 0;
}

int __vdso_clock_gettime64(u32 clock, struct timespec64 *t)
{
    struct moment m;
    if (unlikely(!read_clock(clock, &m)))
        return ask_kernel(SYS_CLOCK_GETTIME64, clock, t);
    t->sec = (s64)m.sec;
    t->nsec = (s32)m.nsec;
    t->pad = 0;
    return 0;
}

int __vdso_clock_getres(u32 clock, struct timespec32 *t)
{
    return ask_kernel(SYS_CLOCK_GETRES, clock, t);
}

// Only the kernel has the time zone.
int __vdso_gettimeofday(struct timeval32 *t, void *zone)
{
    struct moment m;
    if (zone || !t || !read_clock(CLOCK_REALTIME, &m))
        return ask_kernel(SYS_GETTIMEOFDAY, (u32)t, zone);
    t->sec = (s32)m.sec;
    t->usec = (s32)(m.nsec / 1000);
    return 0;
}

s32 __vdso_time(s32 *t)
{
    struct moment m;
    if (!read_clock(CLOCK_REALTIME, &m))
        return ask_kernel(SYS_TIME, (u32)t, NULL);
    if (t)
        *t = (s32)m.sec;
    return (s32)m.sec;
}
