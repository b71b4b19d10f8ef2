// The file, as tools/strobe-src/oracle.c describes it.
#include "oracle.h"

#include <stdio.h>

static void write_all(FILE *f)
{
    for (u32 i = 0; i < node_count; i++) {
        const struct node *n = all_nodes[i];
        if (n->kind == NODE_ROOT)
            fprintf(f, "root %u %u %s\n", n->id, n->number, n->name);
        else
            fprintf(f, "%s %u %u %x %x\n",
                    n->kind == NODE_CALL    ? "call"
                    : n->kind == NODE_ENTRY ? "entry"
                                            : "signal",
                    n->id, n->parent->id, n->site, n->vector);
    }
    for (u32 i = 0; i < block_count; i++) {
        const struct block *b = all_blocks[i];
        fprintf(f, "block %u %x ", b->id, b->at);
        for (u32 j = 0; j < b->size; j++)
            fprintf(f, "%02x", b->bytes[j]);
        for (u32 j = 0; j < b->insns; j++)
            fprintf(f, "%c%x", j ? ',' : ' ', b->insn_at[j] - b->at);
        fputc('\n', f);
    }
    u64 sum = 0;
    for (u64 i = 0; i < tally_room; i++) {
        const struct tally *t = tallies[i];
        if (!t)
            continue;
        u32 insns = all_blocks[t->block]->insns;
        sum += t->count * insns;
        fprintf(f, "run %u %u %llu", t->node, t->block,
                (unsigned long long)t->count);
        for (const struct cut *c = t->cuts; c; c = c->next) {
            fprintf(f, " %u:%llu", c->insns, (unsigned long long)c->count);
            sum -= c->count * (insns - c->insns);
        }
        fputc('\n', f);
    }
    fprintf(f, "total %llu %llu\n", (unsigned long long)total,
            (unsigned long long)sum);
    fprintf(f,
            "clock %llu readings %llu equal %llu wrong %lld halted %llu idle "
            "%llu\n",
            (unsigned long long)clock_check.readings,
            (unsigned long long)clock_check.equal,
            (unsigned long long)clock_check.wrongs,
            (long long)clock_check.wrong, (unsigned long long)clock_check.halts,
            (unsigned long long)clock_check.idle);
}

void result_write(void)
{
    FILE *f = fopen(options.out, "a"); // after the head of tools/vm
    if (!f)
        fail("cannot write the result");
    write_all(f);
    if (fclose(f))
        fail("cannot write the result");
}
