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
#include "lib/string.h"

#include <arch/text.h>

#define LINE_MAX 256u

struct line {
    char text[LINE_MAX];
    u32 length;
};

// What there is room for, with the newline.
static void put(struct line *l, const char *text, u32 bytes)
{
    bytes = MIN(bytes, LINE_MAX - 1 - l->length);
    memcpy(l->text + l->length, text, bytes);
    l->length += bytes;
}

static void begin_line(struct line *l, u32 address)
{
    for (u32 i = 0; i < 8; i++, address <<= 4)
        l->text[i] = "0123456789abcdef"[address >> 28];
    l->length = 8;
}

static void put_decimal(struct line *l, u32 value)
{
    char digits[10], *end = digits + sizeof(digits), *first = end;
    do
        *--first = (char)('0' + value % 10);
    while (value /= 10);
    put(l, first, end - first);
}

static void end_line(struct line *l, struct chain *out)
{
    l->text[l->length++] = '\n';
    chain_append(out, l->text, l->length);
}

static void put_symbol(struct chain *out, u32 address, const char *name,
                       u32 length)
{
    struct line l;
    begin_line(&l, address);
    put(&l, " T ", 3);
    put(&l, name, length);
    end_line(&l, out);
}

static void put_function(struct chain *out, u32 address,
                         const struct ksym_function *f)
{
    struct line l;
    begin_line(&l, address);
    put(&l, " ", 1);
    put_decimal(&l, f->bytes);
    put(&l, " ", 1);
    put(&l, f->name, f->name_length);
    put(&l, " ", 1);
    put(&l, f->file, f->file_length);
    end_line(&l, out);
}

// A reader without permission gets one symbol, at the address that kernel
// samples have for that reader.
static int make_symbols(struct chain *out, u32 number UNUSED)
{
    const char *name;
    u32 address, length;

    if (!may_profile_everything()) {
        put_symbol(out, 0, "(hidden)", 8);
        return 0;
    }
    for (u32 i = 0; (name = ksym_at(i, &address, &length)); i++)
        put_symbol(out, address, name, length);
    return 0;
}

static int make_functions(struct chain *out, u32 number UNUSED)
{
    struct ksym_function f = { 0 };

    for (const u32 *site = text_entries_start; site < text_entries_end;
         site++) {
        if (ksym_function(*site, &f))
            put_function(out, *site, &f);
    }
    return 0;
}

SYSINFO_NODE(symbols, .path = "kernel.symbols",
             .type = SYSINFO_TYPE(SYSINFO_TEXT, 0), .make = make_symbols);
SYSINFO_NODE(functions, .path = "system.functions",
             .type = SYSINFO_TYPE(SYSINFO_TEXT, 0), .restricted = true,
             .make = make_functions);
