// What the system calls itself: uname and /proc/version.
#pragma once

#define KERNEL_NAME "Strobe"
#define KERNEL_RELEASE "0.1.0"
#define KERNEL_VERSION "SMP PREEMPT"
#define KERNEL_MACHINE "i686"
