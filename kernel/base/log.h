// Kernel log, assertions, panic. Any context, NMI included for panic;
// log_printf takes the log lock (interrupts off while it holds it).
#pragma once

#include "lib/assert.h"
#include "lib/types.h"

// Logs one message, which ends with a newline: to the ring that dmesg reads and
// to the consoles.
void log_printf(const char *fmt, ...) PRINTF(1, 2);

// Copies up to `size` bytes of the newest log text; returns the length.
size_t log_read(char *buf, size_t size);

struct trapframe;
NORETURN void panic_trap(const struct trapframe *tf, const char *fmt, ...)
    PRINTF(2, 3);

// Consoles (linker set `consoles`): a device on which the log is shown. `write`
// must work at any time, also in a panic: it polls and takes no sleeping lock.
struct console {
    const char *name;    // ttyS0, tty0: as in console=
    const char *alias;   // another name in console=, or NULL
    bool (*named)(void); // whether console= names it otherwise; or NULL
    u32 rank;            // the highest present one becomes /dev/console's tty
    bool (*probe)(void);
    void (*write)(const char *text, size_t n);
};
#define CONSOLE(c) LINKER_SET_ADD(consoles, c)

void console_init(void);
// The value of console=; NULL: it was not given.
const char *console_argument(void);
// Whether console= is this name or alias.
bool console_wanted(const char *name);
// Writes the log so far to a console: one that has been found later.
void console_show_log(const struct console *c);
// Writes to all selected consoles, unlocked and at once (panic, early start).
void console_write_raw(const char *text, size_t n);
// The same with a format, at most 255 bytes: for reports, which may concern the
// holder of the log's lock. Any context.
void console_printf(const char *fmt, ...) PRINTF(1, 2);
// The name of the console behind /dev/console.
const char *console_name(void);

// Kernel symbols: the name of the function that contains `pc`, and the offset
// into it; NULL if unknown. Any context.
const char *ksym_lookup(u32 pc, u32 *offset);
// The address of that symbol; 0 if unknown. Any context, NMI included.
u32 ksym_start(u32 pc);
// Symbol number `index` in order of address; its linked address (arch/mmu.h),
// its name's length. NULL: the end.
const char *ksym_at(u32 index, u32 *address, u32 *length);
// The function that begins at `pc`; false: none does. All functions, in order
// of address, take one walk: `f` is all zero at first, and says then where the
// walk goes on.
struct ksym_function {
    const char *name;
    const char *file; // of the object that has the code, "kernel/sched/fair.c"
    u32 name_length, file_length;
    u32 bytes; // of assembler code up to the next symbol
    u32 symbol, object;
};
bool ksym_function(u32 pc, struct ksym_function *f);
// The location of the return address at the interrupted instruction `pc`: n <<
// 1 | s for n words above the stack pointer (s: the caller's ebp is the word
// below), or one of the following. Any context.
#define KFRAME_UNKNOWN 254u
#define KFRAME_BELOW_EDI 253u // at edi - 4
#define KFRAME_STANDS 255u    // at ebp + 4
u32 kframe_kind(u32 pc);
