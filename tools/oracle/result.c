// The file, as tools/strobe-src/oracle.c describes it (oracle.h).
#include "oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static FILE *file;
static char line[1 << 16];
static size_t used;

static void flush_line(void)
{
    fwrite(line, 1, used, file);
    used = 0;
}

// Inlined: the length of a constant is known.
static inline __attribute__((always_inline)) void put(const char *text)
{
    size_t size = __builtin_strlen(text);
    if (used + size > sizeof(line))
        flush_line();
    __builtin_memcpy(line + used, text, size);
    used += size;
}

static void put_digits(u64 n, u32 base)
{
    char digits[24];
    size_t at = sizeof(digits);
    do {
        digits[--at] = "0123456789abcdef"[n % base];
        n /= base;
    } while (n);
    if (used + sizeof(digits) > sizeof(line))
        flush_line();
    memcpy(line + used, digits + at, sizeof(digits) - at);
    used += sizeof(digits) - at;
}

static inline __attribute__((always_inline)) void put_number(u64 n, u32 base,
                                                             const char *after)
{
    put_digits(n, base);
    put(after);
}

static void write_node(const struct node *n)
{
    static const char *const kinds[] = { [NODE_ROOT] = "root ",
                                         [NODE_CALL] = "call ",
                                         [NODE_ENTRY] = "entry ",
                                         [NODE_SIGNAL] = "signal " };
    put(kinds[n->kind]);
    put_number(n->index, 10, " ");
    if (n->kind == NODE_ROOT) {
        put_number(n->number, 10, " ");
        put(n->name);
        if (strcmp(n->name, "idle") == 0) {
            put(" ");
            put_number(n->idle->index, 10, " ");
            put_number(n->halted_ns, 10, "");
        }
        put("\n");
    } else {
        put_number(n->parent->index, 10, " ");
        put_number(n->site, 16, " ");
        put_number(n->vector, 16, "\n");
    }
}

static void write_block(const struct block *b)
{
    put("block ");
    put_number(b->id, 10, " ");
    put_number(b->at, 16, " ");
    for (u32 i = 0; i < b->size; i++) {
        char hex[] = { "0123456789abcdef"[b->bytes[i] >> 4],
                       "0123456789abcdef"[b->bytes[i] & 15], 0 };
        put(hex);
    }
    for (u32 i = 0; i < b->insns; i++) {
        put(i ? "," : " ");
        put_number(b->insn_at[i] - b->at, 16, "");
    }
    put("\n");
}

// Returns the instructions.
static u64 write_tally(const struct tally *t)
{
    u32 insns = t->block->insns;
    u64 sum = t->count * insns;
    put("run ");
    put_number(t->node->index, 10, " ");
    put_number(t->block->id, 10, " ");
    put_number(t->count, 10, "");
    for (const struct cut *c = t->cuts; c; c = c->next) {
        put(" ");
        put_number(c->insns, 10, ":");
        put_number(c->count, 10, "");
        sum -= c->count * (insns - c->insns);
    }
    put("\n");
    return sum;
}

static void write_clock(void)
{
    const struct clock_check *c = &clock_check;
    put("clock ");
    put_number(c->readings, 10, " readings ");
    put_number(c->equal, 10, " equal ");
    put_number(c->wrongs, 10, " wrong ");
    put(c->wrong < 0 ? "-" : "");
    put_number((u64)(c->wrong < 0 ? -c->wrong : c->wrong), 10, " halted ");
    put_number(c->halts, 10, " idle ");
    put_number(c->idle, 10, "\n");
}

static void write_all(bool ended)
{
    u64 sum = 0;
    if (options.flat)
        put("flat\n");
    for (u32 i = 0; i < node_count; i++) {
        all_nodes[i]->index = i;
        write_node(all_nodes[i]);
    }
    for (u32 i = 0; i < block_count; i++)
        write_block(all_blocks[i]);
    for (u64 i = 0; i < tallies.count; i++)
        sum += write_tally(tally_at(&tallies, i));
    put("folded ");
    put_number(folded, 10, "\n");
    put("total ");
    put_number(total, 10, " ");
    put_number(sum, 10, "\n");
    write_clock();
    if (ended)
        put("end\n");
}

// The head is tools/vm's. A file that is written again replaces the last one
// when it is whole, so that one is there whenever QEMU is killed.
static char head[8192], name[4096], new_name[sizeof(name) + 8];
static size_t head_size;

static void read_head(void)
{
    file = fopen(options.out, "r");
    if (!file || !realpath(options.out, name))
        fail("cannot read the result's head");
    head_size = fread(head, 1, sizeof(head), file);
    fclose(file);
    snprintf(new_name, sizeof(new_name), "%s.new", name);
}

void result_write(bool ended)
{
    if (!name[0])
        read_head();
    file = fopen(new_name, "w");
    if (!file)
        fail("cannot write the result");
    fwrite(head, 1, head_size, file);
    write_all(ended);
    flush_line();
    if (fclose(file) || rename(new_name, name))
        fail("cannot write the result");
}
