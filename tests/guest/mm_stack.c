// The stack grows on demand, to its limit and not further; null pointers and
// the kernel's addresses are out of reach.
#include "tests/guest/test.h"

#include <sys/mman.h>
#include <sys/resource.h>

#define KIB 1024u

static unsigned recurse(unsigned depth)
{
    volatile char frame[8 * KIB];
    for (unsigned i = 0; i < sizeof(frame); i += 1024)
        frame[i] = (char)depth;
    return depth ? recurse(depth - 1) + (unsigned)frame[1024] % 2 : 0;
}

static void use_6_mib(void)
{
    recurse(6 * KIB * KIB / (8 * KIB));
}

static void overrun(void)
{
    recurse(1u << 30);
}

// One jump far below the stack pointer, but within the limit.
static void jump_down(void)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    *(volatile char *)(here - 4 * KIB * KIB) = 1;
}

static void null_read(void)
{
    volatile char *p = NULL;
    __asm__ volatile("" : "+r"(p));
    (void)*p;
}

static void kernel_read(void)
{
    (void)*(volatile char *)0xc0100000;
}

static void kernel_write(void)
{
    *(volatile char *)0xc0100000 = 1;
}

static void kernel_jump(void)
{
    ((void (*)(void))0xc0100000)();
}

static volatile sig_atomic_t caught;
static char alt[16 * KIB];

static void on_overflow(int signal)
{
    caught = signal;
    _exit(signal == SIGSEGV ? 7 : 8);
}

static void overrun_handled(void)
{
    stack_t s = { .ss_sp = alt, .ss_size = sizeof(alt) };
    check(sigaltstack(&s, NULL) == 0);
    on_signal(SIGSEGV, on_overflow, SA_ONSTACK);
    overrun();
}

int main(void)
{
    alarm(TEST_SECONDS);
    check(exited_with(in_child(use_6_mib), 0));
    check(exited_with(in_child(jump_down), 0));
    ok("the stack grows");
    check(killed_by(in_child(overrun), SIGSEGV));
    check(exited_with(in_child(overrun_handled), 7));
    ok("not beyond its limit");
    check(killed_by(in_child(null_read), SIGSEGV));
    check(killed_by(in_child(kernel_read), SIGSEGV));
    check(killed_by(in_child(kernel_write), SIGSEGV));
    check(killed_by(in_child(kernel_jump), SIGSEGV));
    ok("null and the kernel are out of reach");
    return 0;
}
