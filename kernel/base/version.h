// The system's name and version: uname, /proc/version, kernel.version.
#pragma once

#define KERNEL_NAME "Strobe"
#define KERNEL_MACHINE "i686"
#define KERNEL_NAME_SIZE 65 // of each name in Linux's struct new_utsname

extern const char kernel_release[KERNEL_NAME_SIZE]; // "0.2.0"
extern const char kernel_version[KERNEL_NAME_SIZE]; // "#1 SMP PREEMPT v0.2.0"
