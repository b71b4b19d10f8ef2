// Which of the kernel's reasons for not using a device mean that the machine
// has none, or that it serves another purpose.
#include "selftest.h"

#include <string.h>

// Parts of the texts of arch/i386/clock, arch/i386/pmu and kernel/profile.
static const char *const harmless[] = {
    "the firmware names none",
    "the CPU has none",
    "there is no local APIC",
    "no local APIC for",
    "the HPET has fewer",
    "it has no interrupt line",
    "it does not answer",
    "is in use",
    "it cannot interrupt all CPUs",
    "the clock's events come from another timer",
    "the CPU has no performance counters",
    "no performance counters: their registers ignore writes",
    "have performance counters since K7 only",
    "are not supported",
    "are not known",
    "all performance counters are in use",
    "needs another CPU",
};

enum verdict verdict_of_reason(const char *why)
{
    for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++) {
        if (strstr(why, harmless[i]))
            return NOT_THERE;
    }
    return WRONG;
}
