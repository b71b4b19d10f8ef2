// Reads what tools/oracle has counted (docs/exact.md): each path of calls with
// the blocks of instructions executed in it, as text:
//
// clang-format off
//     oracle 1
//     kernel BUILD-ID
//     command COMMAND
//     flat                             counts without paths: only roots
//     root ID NUMBER KIND              a path's outermost frame
//     root ID NUMBER idle ROOT NS      idle time after a path of ROOT
//     call ID PARENT RETURN 0          a path; addresses are hexadecimal
//     entry ID PARENT AT VECTOR
//     signal ID PARENT AT 0
//     block ID AT BYTES OFFSETS        code, and where its instructions begin
//     run PATH BLOCK COUNT [N:COUNT]   executions; of these, ended after N
//     folded PATHS
//     total INSTRUCTIONS SUM
//     clock N readings N equal N wrong N halted N idle NS
//     end                              unless the run was stopped
// clang-format on
//
// Each instruction becomes a sample whose period is the number of its
// executions.
#include "oracle_reading.h"

#include <stdlib.h>
#include <string.h>

#define MAGIC "oracle 1\n"
#define COUNTS_MAX (1u << 25) // by path and address: a few GiB of memory

// --- samples ----------------------------------------------------------------

static struct place place_of(const struct reading *r, const struct path *p,
                             uint32_t address)
{
    if (address >= KERNEL_BASE)
        return (struct place){ IMAGE_KERNEL, address };
    uint32_t vdso = oracle_vdso_of(r, address);
    if (vdso)
        return (struct place){ IMAGE_VDSO, address - vdso };
    const struct path *root = &r->paths[p->root];
    return (struct place){ root->image, address - root->bias };
}

// Makes the chains of all paths. A path deeper than DEPTH_MAX is counted in the
// path of that depth, which ends with a mark.
static void make_chains(struct reading *r)
{
    struct chains *chains = &r->profile->samples.chains;
    for (uint32_t i = 0; i < r->path_count; i++) {
        struct path *p = &r->paths[i];
        if (p->parent == NONE) {
            p->chain = CHAIN_ROOT;
            continue;
        }
        const struct path *parent = &r->paths[p->parent];
        p->depth = parent->depth + 1;
        struct place place = p->depth == DEPTH_MAX
                                 ? (struct place){ IMAGE_CUT, CHAIN_DEEP - 1 }
                                 : place_of(r, p, p->address);
        p->chain = p->depth > DEPTH_MAX
                       ? parent->chain
                       : chains_add(chains, parent->chain, place);
    }
}

static enum sample_mode mode_of(const struct reading *r, const struct path *p,
                                uint32_t address)
{
    enum root_kind kind = r->paths[p->root].kind;
    return kind == ROOT_IDLE        ? MODE_IDLE
           : kind == ROOT_INTERRUPT ? MODE_IRQ
           : address >= KERNEL_BASE ? MODE_KERNEL
                                    : MODE_USER;
}

static void count_insn(struct reading *r, const struct run *run, uint32_t insn,
                       uint64_t count)
{
    const struct path *p = &r->paths[run->path];
    const struct path *root = &r->paths[p->root];
    const struct block *b = &r->blocks[run->block];
    uint32_t address = b->at + b->offsets[insn];
    bool program = root->kind == ROOT_PROGRAM;
    bool of_task = program || root->kind == ROOT_TASK;
    struct sample_count c = {
        .chain = chains_add(&r->profile->samples.chains, p->chain,
                            place_of(r, p, address)),
        .task = of_task ? root->number + 1 : 0,
        .thread = root->number + 1,
        .image = program ? root->image : IMAGE_KERNEL,
        .program = root->program,
        .mode = mode_of(r, p, address),
        .samples = count,
        .period = count,
    };
    if (count)
        samples_count(&r->profile->samples, &c);
    r->paths[p->root].instructions += count;
}

// Executions of a block's instructions: all, minus those after the end of runs
// that ended early.
static void count_run(struct reading *r, const struct run *run)
{
    const struct block *b = &r->blocks[run->block];
    const char *at = r->at;
    uint64_t *counts = malloc((b->insns + 1) * sizeof(*counts));
    if (!counts)
        fail(1, "%s: not enough memory", r->name);
    for (uint32_t i = 0; i < b->insns; i++)
        counts[i] = run->count;
    r->at = run->cuts;
    while (r->at < r->end && *r->at != '\n') {
        uint32_t insns = (uint32_t)oracle_number(r, 10);
        if (!oracle_take(r, ":"))
            oracle_damaged(r, "a run that ended early has no count");
        uint64_t cut = oracle_number(r, 10);
        for (uint32_t i = insns; i < b->insns; i++)
            counts[i] -= cut;
    }
    r->at = at;
    for (uint32_t i = 0; i < b->insns; i++)
        count_insn(r, run, i, counts[i]);
    free(counts);
}

// --- owners -----------------------------------------------------------------

static void name_owner(char *out, size_t size, const struct reading *r,
                       const struct path *root)
{
    const struct programs *programs = &r->profile->samples.programs;
    if (root->kind == ROOT_INTERRUPT)
        snprintf(out, size, "interrupt %#x", root->number);
    else if (root->kind == ROOT_CODE)
        snprintf(out, size, "%s", root->name);
    else if (r->flat && root->program == PROGRAM_NONE)
        snprintf(out, size, "programs without a file, the vDSO");
    else if (r->flat)
        snprintf(out, size, "%s%s%s", programs_name(programs, root->program),
                 root->also ? " or " : "", root->also ? root->also : "");
    else if (root->kind == ROOT_PROGRAM)
        snprintf(out, size, "%s%s%s in thread %u",
                 root->program == PROGRAM_NONE
                     ? "[unknown]"
                     : programs_name(programs, root->program),
                 root->also ? " or " : "", root->also ? root->also : "",
                 root->number);
    else if (root->kind == ROOT_FIRMWARE)
        snprintf(out, size, "firmware, CPU %u", root->number);
    else if (root->kind == ROOT_START)
        snprintf(out, size, "start-up and idle, CPU %u", root->number);
    else
        snprintf(out, size, "%s %u, in the kernel", root->name, root->number);
}

static void add_owner(struct oracle_check *check, const struct reading *r,
                      const struct path *root)
{
    struct oracle_owner *o = &check->owners[check->owner_count++];
    o->instructions = root->instructions;
    if (root->kind != ROOT_IDLE) {
        name_owner(o->name, sizeof(o->name), r, root);
        return;
    }
    char waits[sizeof(o->name)];
    name_owner(waits, sizeof(waits), r, &r->paths[root->waits]);
    snprintf(o->name, sizeof(o->name), "idle (%llu ns halted) after %.80s",
             (unsigned long long)root->halted_ns, waits);
}

static int by_instructions(const void *a, const void *b)
{
    const struct oracle_owner *x = a, *y = b;
    if (x->instructions != y->instructions)
        return x->instructions < y->instructions ? 1 : -1;
    return strcmp(x->name, y->name);
}

static void list_owners(struct oracle_check *check, const struct reading *r)
{
    check->owners = calloc(r->path_count + 1, sizeof(*check->owners));
    if (!check->owners)
        fail(1, "%s: not enough memory", r->name);
    for (uint32_t i = 0; i < r->path_count; i++) {
        const struct path *p = &r->paths[i];
        if (p->parent != NONE || (!p->instructions && r->flat))
            continue;
        add_owner(check, r, p);
        check->unknown +=
            !r->flat && p->kind == ROOT_PROGRAM && p->program == PROGRAM_NONE;
    }
    qsort(check->owners, check->owner_count, sizeof(*check->owners),
          by_instructions);
}

// --- the file ---------------------------------------------------------------

bool oracle_is(const void *bytes, size_t size)
{
    return size >= strlen(MAGIC) && memcmp(bytes, MAGIC, strlen(MAGIC)) == 0;
}

void oracle_read(struct profile *p, struct oracle_check *check,
                 const void *bytes, size_t size)
{
    struct reading r = { .name = p->path,
                         .at = (const char *)bytes + strlen(MAGIC),
                         .end = (const char *)bytes + size,
                         .profile = p };
    oracle_parse(&r, check);
    p->samples.max = p->samples.chains.max = COUNTS_MAX;
    if (!check->total)
        fail(1, "%s: has no counts: the machine was ended before its command",
             p->path);
    oracle_find_programs(&r);
    make_chains(&r);
    for (uint32_t i = 0; i < r.run_count; i++)
        count_run(&r, &r.runs[i]);
    check->counted = p->samples.total - p->samples.uncounted;
    list_owners(check, &r);
    for (uint32_t i = 0; i < r.block_count; i++) {
        free(r.blocks[i].offsets);
        free(r.blocks[i].code);
    }
    free(r.blocks);
    free(r.paths);
    free(r.runs);
}
