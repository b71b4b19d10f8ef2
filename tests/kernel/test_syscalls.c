// The iteration over the table of system calls.
#include "kernel/syscall/syscall.h"
#include "tests/kernel/test.h"

// The known numbers, each once, ascending.
KERNEL_TEST(syscall_numbers)
{
    u32 known = 0, from = 0;
    for (;;) {
        u32 n = syscall_next(from);
        for (; from != n && from < SYSCALL_STROBE_FIRST * 2; from++)
            expect(!syscall_name(from));
        if (n == SYSCALL_UNKNOWN)
            break;
        expect(syscall_name(n));
        known++;
        from = n + 1;
    }
    expect(known == CALL_COUNT - 1);
    expect(syscall_next(SYSCALL_UNKNOWN) == SYSCALL_UNKNOWN);
}
