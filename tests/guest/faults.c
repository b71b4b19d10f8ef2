// CPU exceptions: a program gets the right signal, and nothing else is
// affected.
#include "test.h"

#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/ucontext.h>
#include <sys/utsname.h>

static volatile int caught_signal, caught_code;
static void *volatile caught_address;
static sigjmp_buf back;

static void on_fault(int signal, siginfo_t *info, void *context)
{
    (void)context;
    caught_signal = signal;
    caught_code = info->si_code;
    caught_address = info->si_addr;
    siglongjmp(back, 1);
}

static char alternate[65536];

static const int signals[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP };

#define SIGNALS (sizeof(signals) / sizeof(*signals))

static void catch_all(void)
{
    struct sigaction action = { .sa_sigaction = on_fault,
                                .sa_flags = SA_SIGINFO | SA_ONSTACK };
    stack_t stack = { .ss_sp = alternate, .ss_size = sizeof(alternate) };

    check(sigaltstack(&stack, NULL) == 0);
    for (size_t i = 0; i < SIGNALS; i++)
        check(sigaction(signals[i], &action, NULL) == 0);
}

static void catch_none(void)
{
    for (size_t i = 0; i < SIGNALS; i++)
        on_signal(signals[i], SIG_DFL, 0);
}

// --- what faults ------------------------------------------------------------

static const int constant = 1;
static char *page;          // readable and writable
static char *volatile null; // hides the value from the compiler

static void read_null(void)
{
    (void)*(volatile int *)(null + 8);
}

static void write_null(void)
{
    *(volatile int *)(null + 12) = 1;
}

static void read_kernel(void)
{
    (void)*(volatile int *)0xffffff00;
}

static void write_constant(void)
{
    *(volatile int *)&constant = 2;
}

static void write_code(void)
{
    *(volatile char *)write_code = 0;
}

static void read_unmapped(void)
{
    (void)*(volatile char *)(page + 4096);
}

static void jump_null(void)
{
    ((void (*)(void))4)();
}

static void divide(void)
{
    __asm__ volatile("xor %%ecx, %%ecx; mov $1, %%eax; cltd; idiv %%ecx" ::
                         : "eax", "ecx", "edx");
}

static void divide_overflow(void)
{
    __asm__ volatile("mov $0x80000000, %%eax; cltd; mov $-1, %%ecx;"
                     "idiv %%ecx" ::
                         : "eax", "ecx", "edx");
}

static void invalid_opcode(void)
{
    __asm__ volatile("ud2");
}

static void halt(void)
{
    __asm__ volatile("hlt");
}

static void disable_interrupts(void)
{
    __asm__ volatile("cli");
}

static void port_input(void)
{
    __asm__ volatile("in $0x60, %%al" ::: "eax");
}

static void load_cr3(void)
{
    __asm__ volatile("mov %%eax, %%cr3" ::: "memory");
}

static void read_msr(void)
{
    __asm__ volatile("rdmsr" ::: "eax", "edx");
}

static void load_idt(void)
{
    __asm__ volatile("lidt 0" ::: "memory");
}

static void bad_segment(void)
{
    __asm__ volatile("mov %0, %%es" ::"r"(0x1234));
}

static void far_jump(void)
{
    static const struct {
        uint32_t offset;
        uint16_t selector;
    } __attribute__((packed)) target = { 0x1000, 0x08 };
    __asm__ volatile("ljmp *%0" ::"m"(target));
}

static void kernel_gate(void) // the page fault vector
{
    __asm__ volatile("int $14");
}

static void device_gate(void)
{
    __asm__ volatile("int $0x40");
}

static void breakpoint(void)
{
    __asm__ volatile("int3");
}

static void single_step(void)
{
    __asm__ volatile("pushf; orl $0x100, (%esp); popf; nop");
}

static void x87_divide(void)
{
    static const uint16_t unmasked = 0x37b; // zero divide
    __asm__ volatile(
        "fninit; fldcw %0; fld1; fldz; fdivrp; fwait" ::"m"(unmasked));
}

static volatile int deep;

static int __attribute__((noinline)) recurse(int n)
{
    volatile char room[512];
    room[0] = n;
    deep = n;
    return n < 0 ? 0 : recurse(n + 1) + room[0];
}

static void overrun_stack(void)
{
    recurse(0);
}

static void lose_stack(void)
{
    __asm__ volatile("mov $0x10, %esp; push %eax");
}

struct fault {
    const char *what;
    void (*commit)(void);
    int signal;
    int code;       // 0: any
    uint32_t where; // si_addr; 0: any
};

static const struct fault faults[] = {
    { "read null", read_null, SIGSEGV, SEGV_MAPERR, 8 },
    { "write null", write_null, SIGSEGV, SEGV_MAPERR, 12 },
    { "jump to null", jump_null, SIGSEGV, SEGV_MAPERR, 4 },
    { "read kernel", read_kernel, SIGSEGV, 0, 0xffffff00 },
    { "write constant", write_constant, SIGSEGV, SEGV_ACCERR,
      (uint32_t)&constant },
    { "write code", write_code, SIGSEGV, SEGV_ACCERR, (uint32_t)write_code },
    { "read unmapped", read_unmapped, SIGSEGV, SEGV_MAPERR, 0 },
    { "divide by zero", divide, SIGFPE, FPE_INTDIV, 0 },
    { "divide overflow", divide_overflow, SIGFPE, FPE_INTDIV, 0 },
    { "invalid opcode", invalid_opcode, SIGILL, 0, (uint32_t)invalid_opcode },
    { "hlt", halt, SIGSEGV, 0, 0 },
    { "cli", disable_interrupts, SIGSEGV, 0, 0 },
    { "in", port_input, SIGSEGV, 0, 0 },
    { "mov cr3", load_cr3, SIGSEGV, 0, 0 },
    { "rdmsr", read_msr, SIGSEGV, 0, 0 },
    { "lidt", load_idt, SIGSEGV, 0, 0 },
    { "bad segment", bad_segment, SIGSEGV, 0, 0 },
    { "far jump", far_jump, SIGSEGV, 0, 0 },
    { "int 14", kernel_gate, SIGSEGV, 0, 0 },
    { "int 0x40", device_gate, SIGSEGV, 0, 0 },
    { "int3", breakpoint, SIGTRAP, 0, 0 },
    { "single step", single_step, SIGTRAP, 0, 0 },
    { "x87 divide by zero", x87_divide, SIGFPE, FPE_FLTDIV, 0 },
    { "stack overrun", overrun_stack, SIGSEGV, 0, 0 },
    { "no stack", lose_stack, SIGSEGV, 0, 0 },
};

#define FAULTS (sizeof(faults) / sizeof(*faults))

static const struct fault *chosen;

static void commit_chosen(void)
{
    // Small, so that the stack overflows soon.
    struct rlimit limit = { 1 << 20, 1 << 20 };
    setrlimit(RLIMIT_STACK, &limit);
    chosen->commit();
    check(!"it did not fault");
}

static void one_by_one(void)
{
    for (size_t i = 0; i < FAULTS; i++) {
        const struct fault *f = chosen = &faults[i];
        int status = in_child(commit_chosen);
        if (!killed_by(status, f->signal))
            dprintf(1, "%s: status %x\n", f->what, status);
        check(killed_by(status, f->signal));
    }
    ok("faults kill by the right signal");
}

static void caught(void)
{
    for (volatile size_t i = 0; i < FAULTS; i++) {
        const struct fault *volatile f = &faults[i];
        caught_signal = 0;
        if (sigsetjmp(back, 1) == 0) {
            f->commit();
            check(!"it did not fault");
        }
        __asm__ volatile("fninit");
        // The invalid instruction follows the function's first ones.
        uint32_t offset = (uint32_t)caught_address - f->where;
        bool near = f->signal == SIGILL ? offset < 16 : offset == 0;
        if (caught_signal != f->signal ||
            (f->code != 0 && caught_code != f->code) ||
            (f->where != 0 && !near)) {
            dprintf(1, "%s: signal %d code %d address %p\n", f->what,
                    caught_signal, caught_code, caught_address);
            check(!"the wrong signal");
        }
    }
    ok("faults can be caught, with code and address");
}

static void ignored(void)
{
    sigset_t all;
    signal(SIGSEGV, SIG_IGN);
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    read_null();
}

static void ignoring_does_not_help(void)
{
    check(killed_by(in_child(ignored), SIGSEGV));
    ok("an ignored, blocked fault kills all the same");
}

// --- where the kernel's tables are ------------------------------------------

// Six bytes at most (SDM vol. 2, SGDT).
#define STORES(instruction)                                 \
    static void store_##instruction(void)                   \
    {                                                       \
        char place[6];                                      \
        __asm__ volatile(#instruction " %0" : "=m"(place)); \
    }
STORES(sgdt)
STORES(sidt)
STORES(sldt)
STORES(str)
STORES(smsw)

static bool cpu_has_umip(void)
{
    static char text[65536];
    int fd = open("/proc/cpuinfo", O_RDONLY);
    check(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0);
    close(fd);
    return strstr(text, " umip") != NULL;
}

// With UMIP, on every CPU. (Linux emulates the instructions.)
static void tables_are_hidden(void)
{
    static void (*const stores[])(void) = { store_sgdt, store_sidt, store_sldt,
                                            store_str, store_smsw };
    struct utsname names;
    cpu_set_t all, one;
    check(uname(&names) == 0 && sched_getaffinity(0, sizeof(all), &all) == 0);
    bool hidden = cpu_has_umip() && strcmp(names.sysname, "Strobe") == 0;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &all))
            continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        check(sched_setaffinity(0, sizeof(one), &one) == 0);
        for (size_t i = 0; i < sizeof(stores) / sizeof(*stores); i++) {
            int status = in_child(stores[i]);
            check(hidden ? killed_by(status, SIGSEGV) : exited_with(status, 0));
        }
    }
    check(sched_setaffinity(0, sizeof(all), &all) == 0);
    ok(hidden ? "the places of the kernel's tables are hidden"
              : "this CPU tells where the kernel's tables are");
}

// --- flags at the kernel's door ---------------------------------------------

static void odd_flags(void)
{
    int r;
    char text[] = "ok x\n", copy[64];
    struct {
        int32_t sec, nsec;
    } t = { 7, 7 };

    // DF set: the kernel must still copy upwards.
    __asm__ volatile("std; int $0x80; cld"
                     : "=a"(r)
                     : "a"(265), "b"(CLOCK_MONOTONIC), "c"(&t)
                     : "memory");
    check(r == 0 && t.nsec != 7);
    // NT set: an IRET in the kernel with NT would switch tasks.
    __asm__ volatile("pushf; orl $0x4000, (%%esp); popf; int $0x80;"
                     "pushf; andl $~0x4000, (%%esp); popf"
                     : "=a"(r)
                     : "a"(20)
                     : "memory");
    check(r == getpid());
    // AC set: the kernel's own unaligned accesses must not fault.
    memcpy(copy + 1, text, sizeof(text));
    __asm__ volatile("pushf; orl $0x40000, (%%esp); popf; int $0x80;"
                     "pushf; andl $~0x40000, (%%esp); popf"
                     : "=a"(r)
                     : "a"(265), "b"(CLOCK_MONOTONIC), "c"(&t)
                     : "memory");
    check(r == 0);
    ok("odd flags at a system call");
}

static void no_stack_at_call(void)
{
    int r;
    __asm__ volatile("mov %%esp, %%esi; xor %%esp, %%esp; int $0x80;"
                     "mov %%esi, %%esp"
                     : "=a"(r)
                     : "a"(20)
                     : "esi", "memory");
    check(r == getpid());
    ok("a system call needs no user stack");
}

static void no_stack_for_handler(void)
{
    // No alternate stack and an invalid esp: the signal cannot be delivered.
    stack_t stack = { .ss_flags = SS_DISABLE };
    sigaltstack(&stack, NULL);
    lose_stack();
}

// --- what a handler may do to the saved state -------------------------------

static void (*volatile spoil)(greg_t *registers);

static void spoiling(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)info;
    spoil(((ucontext_t *)context)->uc_mcontext.gregs);
}

static void kernel_code(greg_t *registers)
{
    registers[REG_CS] = 0x08;
}

static void kernel_stack(greg_t *registers)
{
    registers[REG_SS] = 0x10;
}

static void null_stack(greg_t *registers)
{
    registers[REG_SS] = 0;
}

static void odd_data(greg_t *registers)
{
    registers[REG_DS] = 0xfff8;
    registers[REG_ES] = 0x1230;
}

static void kernel_eip(greg_t *registers)
{
    registers[REG_EIP] = 0xfffffff0;
}

static void all_flags(greg_t *registers)
{
    // VM, IOPL 3, NT, and interrupts off
    registers[REG_EFL] = (registers[REG_EFL] | 0x27000) & ~0x200;
}

static void return_spoiled(void)
{
    struct sigaction action = { .sa_sigaction = spoiling,
                                .sa_flags = SA_SIGINFO };
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
}

static void privileges_after_return(void)
{
    return_spoiled();
    uint32_t flags;
    __asm__ volatile("pushf; pop %0" : "=r"(flags));
    // VM and IOPL stay 0, IF stays 1.
    check((flags & 0x23200) == 0x200);
    disable_interrupts(); // faults, because IOPL is 0
}

static void crafted_frame(void)
{
    // rt_sigreturn on a stack without a frame.
    __asm__ volatile("mov $0x20, %esp; mov $173, %eax; int $0x80");
}

static void crafted_old_frame(void)
{
    __asm__ volatile("mov $0xfffffff0, %esp; mov $119, %eax; int $0x80");
}

// The kernel may refuse the selector or replace it with a valid one.
static bool refused_or_mended(int status)
{
    return killed_by(status, SIGSEGV) || exited_with(status, 0);
}

static void spoiled_returns(void)
{
    spoil = kernel_code;
    check(killed_by(in_child(return_spoiled), SIGSEGV));
    spoil = kernel_stack;
    check(refused_or_mended(in_child(return_spoiled)));
    spoil = null_stack;
    check(refused_or_mended(in_child(return_spoiled)));
    spoil = odd_data;
    check(refused_or_mended(in_child(return_spoiled)));
    spoil = kernel_eip;
    check(killed_by(in_child(return_spoiled), SIGSEGV));
    spoil = all_flags;
    check(killed_by(in_child(privileges_after_return), SIGSEGV));
    check(killed_by(in_child(crafted_frame), SIGSEGV));
    check(killed_by(in_child(crafted_old_frame), SIGSEGV));
    check(killed_by(in_child(no_stack_for_handler), SIGSEGV));
    ok("spoiled signal frames");
}

// A walk of the kernel's frames reaches the trap frame, whose ebp is this.
static void undefined_at_the_top(void)
{
    __asm__ volatile("mov $0xfffffffc, %ebp; ud2");
}

static void call_at_the_top(void)
{
    __asm__ volatile("mov $0xfffffff8, %%ebp; int $0x80; mov $1, %%eax;"
                     "xor %%ebx, %%ebx; int $0x80"
                     :
                     : "a"(145), "b"(-1), "c"(page), "d"(1)); // readv
}

static void odd_frame_pointers(void)
{
    check(killed_by(in_child(undefined_at_the_top), SIGILL));
    check(exited_with(in_child(call_at_the_top), 0));
    ok("frame pointers at the end of memory");
}

int main(void)
{
    alarm(TEST_SECONDS);
    page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                -1, 0);
    check(page != MAP_FAILED && munmap(page + 4096, 4096) == 0);
    one_by_one();
    catch_all();
    caught();
    catch_none();
    ignoring_does_not_help();
    tables_are_hidden();
    odd_flags();
    no_stack_at_call();
    spoiled_returns();
    odd_frame_pointers();
    return 0;
}
