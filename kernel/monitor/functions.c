// kernel.symbols: the kernel's symbols, in the format of nm, which
// lib/symbols.h reads.
//
// system.functions: the functions that call tracing can choose
// (<strobe/calls.h>), by address. A line of each: ADDRESS SIZE NAME FILE, the
// address in hexadecimal, the size in bytes. A function from a header has the
// file of the object that it was compiled into.
//
// Tools read thousands of these lines before they begin. The formatter takes
// four times as long for them.

#include "kernel/base/log.h"
#include "kernel/monitor/sysinfo.h"
#include "kernel/task/permission.h"

#include <arch/text.h>

#define LINE_MAX 256u

struct line {
    char text[LINE_MAX];
    u32 length;
};

static void put_text(struct line *l, const char *text)
{
    while (*text && l->length < LINE_MAX - 1) // room for the newline
        l->text[l->length++] = *text++;
}

static void put_address(struct line *l, u32 address)
{
    for (s32 shift = 28; shift >= 0; shift -= 4)
        l->text[l->length++] = "0123456789abcdef"[address >> shift & 0xf];
}

static void put_decimal(struct line *l, u32 value)
{
    char digits[11], *first = digits + sizeof(digits) - 1;
    *first = 0;
    do
        *--first = (char)('0' + value % 10);
    while (value /= 10);
    put_text(l, first);
}

static void end_line(struct line *l, struct chain *out)
{
    l->text[l->length++] = '\n';
    chain_append(out, l->text, l->length);
}

static void put_symbol(struct chain *out, u32 address, const char *name)
{
    struct line l;
    l.length = 0;
    put_address(&l, address);
    put_text(&l, " T ");
    put_text(&l, name);
    end_line(&l, out);
}

// A reader without permission gets one symbol, at the address that kernel
// samples have for that reader.
static int make_symbols(struct chain *out, u32 number UNUSED)
{
    const char *name;
    u32 address;

    if (!may_profile_everything()) {
        put_symbol(out, 0, "(hidden)");
        return 0;
    }
    for (u32 i = 0; (name = ksym_at(i, &address)); i++)
        put_symbol(out, address, name);
    return 0;
}

static int make_functions(struct chain *out, u32 number UNUSED)
{
    for (const u32 *site = text_entries_start; site < text_entries_end;
         site++) {
        struct ksym_function f;
        struct line l;
        if (!ksym_function(*site, &f))
            continue;
        l.length = 0;
        put_address(&l, *site);
        put_text(&l, " ");
        put_decimal(&l, f.bytes);
        put_text(&l, " ");
        put_text(&l, f.name);
        put_text(&l, " ");
        put_text(&l, f.file);
        end_line(&l, out);
    }
    return 0;
}

SYSINFO_NODE(symbols, .path = "kernel.symbols",
             .type = SYSINFO_TYPE(SYSINFO_TEXT, 0), .make = make_symbols);
SYSINFO_NODE(functions, .path = "system.functions",
             .type = SYSINFO_TYPE(SYSINFO_TEXT, 0), .restricted = true,
             .make = make_functions);
