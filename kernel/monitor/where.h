// Where every CPU is, for a person who looks at a machine that hangs.
#pragma once

#include "lib/types.h"

// Prints on the consoles, with `why`, what each CPU does: thread, backtrace,
// account, locks where LOCKDEP knows them. The other CPUs tell it in an NMI, so
// that they may have interrupts off. Any context but NMI. Takes no lock.
void say_where_cpus_are(const char *why);
