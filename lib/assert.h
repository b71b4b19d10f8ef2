// Assertions, for kernel, tools and tests: conditions that must hold regardless
// of users, files and devices. A failed one stops the machine with a backtrace,
// or aborts the program.
#pragma once

#include "lib/types.h"

#if __STDC_HOSTED__
#include <assert.h>
#else
// Stops the machine: message, registers, symbolised backtrace; stops the other
// CPUs; ends QEMU with the panic status. Any context.
NORETURN void panic(const char *fmt, ...) PRINTF(1, 2);

#define ASSERT_SAYING(condition, text)                                       \
    do {                                                                     \
        if (unlikely(!(condition)))                                          \
            panic("assertion failed: %s (%s:%d)", text, __FILE__, __LINE__); \
    } while (0)
#define assert(condition) ASSERT_SAYING(condition, #condition)
#endif

// For paths where each instruction counts: checked in checked kernels and in
// the host's sanitizer tests only.
#if !defined(CHECKED) && !defined(__SANITIZE_ADDRESS__)
#define assert_checked(condition) ((void)(false && (condition)))
#elif __STDC_HOSTED__
#define assert_checked(condition) assert(condition)
#else
#define assert_checked(condition) ASSERT_SAYING(condition, #condition)
#endif
