// kernel.symbols: the kernel's symbols, in the format of nm, which
// user/libread/symbols.h reads.
//
// system.functions: the functions that call tracing can choose.
//
// Tools read thousands of the first two before they begin. The formatter takes
// four times as long for a line.

#include "arch/mmu.h"
#include "arch/text.h"
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/monitor/sysinfo.h"
#include "kernel/task/permission.h"
#include "lib/string.h"

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

static void fill(struct sysinfo_function *r, const struct ksym_function *f)
{
    r->size = f->bytes;
    memcpy(r->name, f->name, MIN(f->name_length, sizeof(r->name) - 1));
    memcpy(r->file, f->file, MIN(f->file_length, sizeof(r->file) - 1));
}

static u32 count_functions(void)
{
    return (u32)(text_entries_end - text_entries_start);
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
        struct sysinfo_function *r = chain_add(out);
        if (!r)
            break;
        r->address = linked_address(*site);
        if (ksym_function(*site, &f))
            fill(r, &f);
        else
            r->name[0] = r->file[0] = '?';
    }
    return 0;
}

SYSINFO_NODE(symbols, .path = "kernel.symbols",
             .type = SYSINFO_TYPE(SYSINFO_TEXT, 0), .make = make_symbols);
SYSINFO_NODE(functions, .path = "system.functions",
             .type = SYSINFO_TYPE(SYSINFO_DATA, SYSINFO_RECORD_FUNCTION),
             .restricted = true, .make = make_functions,
             .count = count_functions);
