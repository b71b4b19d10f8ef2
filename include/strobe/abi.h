// Constants that the kernel, its programs and host tools agree on.
#pragma once

#define STROBE_CPUS_MAX 256 // CPUs that are supported, a multiple of 32

// QEMU's isa-debug-exit (iobase 0xf4): QEMU exits with (value << 1) | 1.
#define DEBUG_EXIT_PORT 0xf4
#define DEBUG_EXIT_OK 0x10     // 33: powered off
#define DEBUG_EXIT_FAILED 0x11 // 35: in-kernel tests failed
#define DEBUG_EXIT_PANIC 0x3e  // 125: panic
