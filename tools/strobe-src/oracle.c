// Reads what tools/oracle has counted (docs/exact.md): each path of calls with
// the blocks of instructions executed in it, as text:
//
// clang-format off
//     oracle 1
//     kernel BUILD-ID
//     command COMMAND
//     root ID NUMBER KIND              a path's outermost frame
//     call ID PARENT RETURN 0          a path; addresses are hexadecimal
//     entry ID PARENT AT VECTOR
//     signal ID PARENT AT 0
//     block ID AT BYTES OFFSETS        code, and where its instructions begin
//     run PATH BLOCK COUNT [N:COUNT]   executions; of these, ended after N
//     total INSTRUCTIONS SUM
//     clock N readings N equal N wrong N halted N idle NS
// clang-format on
//
// Each instruction becomes a sample whose period is the number of its
// executions.
#include "oracle.h"

#include "lib/elf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC "oracle 1\n"
#define NONE UINT32_MAX
#define DEPTH_MAX 500
#define VDSO_LOWEST 0xa0000000u // it is near the stack, programs are far below

enum root_kind {
    ROOT_FIRMWARE,
    ROOT_START,
    ROOT_THREAD,
    ROOT_INTERRUPT,
    ROOT_PROGRAM
};

struct path {
    uint32_t parent;  // NONE: a root
    uint32_t address; // of the caller in its parent, as in struct place
    uint32_t root;    // index in `paths`
    uint32_t depth;
    uint32_t chain; // of its callers
    // Of a root:
    enum root_kind kind;
    const char *name;
    uint32_t number;
    uint64_t instructions;
    uint32_t image, program;
};

struct block {
    uint32_t at, insns;
    const char *bytes; // hexadecimal digits, in the file
    uint32_t size;
    uint32_t *offsets;
    uint8_t *code;
};

#define VDSO_BASES_MAX 64 // it is at one address, unless addresses are random

struct run {
    uint32_t path, block;
    uint64_t count;
    const char *cuts; // the rest of the line
};

struct reading {
    const char *name, *at, *end;
    struct profile *profile;
    struct path *paths;
    uint32_t path_count, path_room;
    struct block *blocks;
    uint32_t block_count, block_room;
    struct run *runs;
    uint32_t run_count, run_room;
    uint64_t taken;
    uint32_t vdso_bases[VDSO_BASES_MAX], vdso_count, vdso_size;
};

_Noreturn static void damaged(const struct reading *r, const char *why)
{
    fail(1, "%s: damaged: %s", r->name, why);
}

static void *grown(const struct reading *r, void *list, uint32_t *room,
                   size_t size)
{
    *room = *room ? 2 * *room : 1024;
    list = realloc(list, *room * size);
    if (!list)
        fail(1, "%s: not enough memory", r->name);
    return list;
}

// --- words ------------------------------------------------------------------

static bool take(struct reading *r, const char *word)
{
    size_t size = strlen(word);
    if ((size_t)(r->end - r->at) < size || memcmp(r->at, word, size) != 0)
        return false;
    r->at += size;
    return true;
}

static int digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

static uint64_t number(struct reading *r, unsigned base)
{
    const char *from = r->at;
    uint64_t value = 0;
    while (r->at < r->end && digit(*r->at) >= 0 && digit(*r->at) < (int)base)
        value = value * base + (unsigned)digit(*r->at++);
    if (r->at == from)
        damaged(r, "a number is missing");
    while (r->at < r->end && *r->at == ' ')
        r->at++;
    return value;
}

static void end_line(struct reading *r)
{
    if (r->at == r->end || *r->at != '\n')
        damaged(r, "a line has not its form");
    r->at++;
}

// --- paths ------------------------------------------------------------------

static struct path *new_path(struct reading *r)
{
    if (number(r, 10) != r->path_count)
        damaged(r, "the paths are not in order");
    if (r->path_count == r->path_room)
        r->paths = grown(r, r->paths, &r->path_room, sizeof(*r->paths));
    struct path *p = &r->paths[r->path_count++];
    *p = (struct path){ .parent = NONE };
    return p;
}

static void read_root(struct reading *r)
{
    static const struct {
        const char *name;
        enum root_kind kind;
    } kinds[] = { { "firmware of CPU", ROOT_FIRMWARE },
                  { "start-up of CPU", ROOT_START },
                  { "kernel thread", ROOT_THREAD },
                  { "task", ROOT_THREAD },
                  { "interrupt", ROOT_INTERRUPT },
                  { "program", ROOT_PROGRAM },
                  { "thread", ROOT_PROGRAM } };
    struct path *p = new_path(r);
    p->number = (uint32_t)number(r, 10);
    p->root = r->path_count - 1;
    p->image = IMAGE_UNKNOWN;
    p->program = PROGRAM_NONE;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (take(r, kinds[i].name)) {
            p->kind = kinds[i].kind;
            p->name = kinds[i].name;
            return;
        }
    }
    damaged(r, "a root of an unknown kind");
}

static void read_path(struct reading *r, bool is_call)
{
    struct path *p = new_path(r);
    p->parent = (uint32_t)number(r, 10);
    if (p->parent >= r->path_count - 1)
        damaged(r, "a path comes before its parent");
    p->address = (uint32_t)number(r, 16) - is_call;
    p->root = r->paths[p->parent].root;
    number(r, 16);
}

static void read_block(struct reading *r)
{
    if (number(r, 10) != r->block_count)
        damaged(r, "the blocks are not in order");
    if (r->block_count == r->block_room)
        r->blocks = grown(r, r->blocks, &r->block_room, sizeof(*r->blocks));
    struct block *b = &r->blocks[r->block_count++];
    *b = (struct block){ .at = (uint32_t)number(r, 16), .bytes = r->at };
    while (r->at < r->end && digit(*r->at) >= 0)
        r->at++;
    b->size = (uint32_t)(r->at - b->bytes) / 2;
    b->offsets = malloc((b->size + 1) * sizeof(*b->offsets));
    if (!b->offsets)
        fail(1, "%s: not enough memory", r->name);
    while (take(r, " ") || take(r, ",")) {
        if (b->insns == b->size)
            damaged(r, "a block has too many instructions");
        b->offsets[b->insns++] = (uint32_t)number(r, 16);
    }
}

static void read_run(struct reading *r)
{
    if (r->run_count == r->run_room)
        r->runs = grown(r, r->runs, &r->run_room, sizeof(*r->runs));
    struct run *run = &r->runs[r->run_count++];
    run->path = (uint32_t)number(r, 10);
    run->block = (uint32_t)number(r, 10);
    run->count = number(r, 10);
    run->cuts = r->at;
    if (run->path >= r->path_count || run->block >= r->block_count)
        damaged(r, "a run of an unknown path or block");
    while (r->at < r->end && *r->at != '\n')
        r->at++;
}

// --- programs ---------------------------------------------------------------

// Whether the file has the block's bytes at its address.
static bool has_block(const uint8_t *file, size_t size, const struct block *b)
{
    struct elf_header h;
    struct elf_segment s;
    memcpy(&h, file, sizeof(h));
    for (uint32_t i = 0; i < h.phnum; i++) {
        size_t at = h.phoff + (size_t)i * sizeof(s);
        if (at + sizeof(s) > size)
            return false;
        memcpy(&s, file + at, sizeof(s));
        uint32_t offset = b->at - s.vaddr;
        if (s.type != ELF_PT_LOAD || offset >= s.filesz ||
            s.filesz - offset < b->size || (uint64_t)s.offset + s.filesz > size)
            continue;
        return memcmp(file + s.offset + offset, b->code, b->size) == 0;
    }
    return false;
}

// Notes the addresses of the vDSO, which is at any page.
static void find_vdso(struct reading *r, const struct image *vdso,
                      const struct block *b)
{
    for (uint32_t at = b->at & 4095; at + b->size <= vdso->code_size;
         at += 4096) {
        uint32_t base = b->at - at, i = 0;
        if (memcmp(vdso->code + at, b->code, b->size) != 0)
            continue;
        while (i < r->vdso_count && r->vdso_bases[i] != base)
            i++;
        if (i == r->vdso_count && i < VDSO_BASES_MAX)
            r->vdso_bases[r->vdso_count++] = base;
        return;
    }
}

// Counts for each program how many of its runs each file explains.
static void score_file(struct reading *r, const struct elf_file *f,
                       uint32_t *score)
{
    size_t size;
    const uint8_t *file = file_map(f->path, &size);
    if (!file)
        return;
    bool *has = calloc(r->block_count + 1, sizeof(*has));
    if (!has)
        fail(1, "%s: not enough memory", r->name);
    for (uint32_t i = 0; i < r->block_count; i++)
        has[i] = r->blocks[i].at < KERNEL_BASE &&
                 has_block(file, size, &r->blocks[i]);
    for (uint32_t i = 0; i < r->run_count; i++)
        score[r->paths[r->runs[i].path].root] += has[r->runs[i].block];
    free(has);
    file_unmap(file, size);
}

static void name_program(struct reading *r, struct path *p,
                         const struct elf_file *f)
{
    struct samples *s = &r->profile->samples;
    struct program program = { .task = p->number + 1 };
    const char *slash = strrchr(f->path, '/');
    snprintf(program.name, sizeof(program.name), "%s",
             slash ? slash + 1 : f->path);
    program.image =
        images_add(&s->images, f->path, f->build_id, f->build_id_size);
    program.time = s->programs.count;
    programs_add(&s->programs, &program);
    p->image = program.image;
    p->program = s->programs.count - 1;
}

// Finds the file of each program by the bytes of its blocks.
static void find_programs(struct reading *r)
{
    const struct elves *e = &r->profile->elves;
    uint32_t *best = calloc(r->path_count + 1, sizeof(*best));
    uint32_t *score = calloc(r->path_count + 1, sizeof(*score));
    size_t *file = calloc(r->path_count + 1, sizeof(*file));
    if (!best || !score || !file)
        fail(1, "%s: not enough memory", r->name);
    for (size_t i = 0; i < e->count; i++) {
        memset(score, 0, r->path_count * sizeof(*score));
        score_file(r, &e->list[i], score);
        for (uint32_t j = 0; j < r->path_count; j++) {
            if (score[j] > best[j]) {
                best[j] = score[j];
                file[j] = i;
            }
        }
    }
    for (uint32_t i = 0; i < r->path_count; i++) {
        if (r->paths[i].parent == NONE && r->paths[i].kind == ROOT_PROGRAM &&
            best[i])
            name_program(r, &r->paths[i], &e->list[file[i]]);
    }
    free(best);
    free(score);
    free(file);
}

// --- samples ----------------------------------------------------------------

static struct place place_of(const struct reading *r, const struct path *p,
                             uint32_t address)
{
    if (address >= KERNEL_BASE)
        return (struct place){ IMAGE_KERNEL, address };
    for (uint32_t i = 0; i < r->vdso_count; i++) {
        uint32_t offset = address - r->vdso_bases[i];
        if (offset < r->vdso_size)
            return (struct place){ IMAGE_VDSO, offset };
    }
    return (struct place){ r->paths[p->root].image, address };
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
    return kind == ROOT_INTERRUPT   ? MODE_IRQ
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
    uint32_t task = root->kind == ROOT_PROGRAM ? root->number + 1 : 0;
    struct sample_count c = {
        .chain = chains_add(&r->profile->samples.chains, p->chain,
                            place_of(r, p, address)),
        .task = task,
        .thread = root->number + 1,
        .image = task ? root->image : IMAGE_KERNEL,
        .program = root->program,
        .mode = mode_of(r, p, address),
        .samples = count,
        .period = count,
    };
    if (count)
        samples_count(&r->profile->samples, &c);
    r->taken += count;
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
        uint32_t insns = (uint32_t)number(r, 10);
        if (!take(r, ":"))
            damaged(r, "a run that ended early has no count");
        uint64_t cut = number(r, 10);
        for (uint32_t i = insns; i < b->insns; i++)
            counts[i] -= cut;
    }
    r->at = at;
    for (uint32_t i = 0; i < b->insns; i++)
        count_insn(r, run, i, counts[i]);
    free(counts);
}

static void decode_blocks(struct reading *r)
{
    struct images *images = &r->profile->samples.images;
    const struct image *vdso = images_load(images, IMAGE_VDSO);
    r->vdso_size = vdso->code_size;
    for (uint32_t i = 0; i < r->block_count; i++) {
        struct block *b = &r->blocks[i];
        b->code = malloc(b->size + 1);
        if (!b->code)
            fail(1, "%s: not enough memory", r->name);
        for (uint32_t j = 0; j < b->size; j++)
            b->code[j] = (uint8_t)(digit(b->bytes[2 * j]) << 4 |
                                   digit(b->bytes[2 * j + 1]));
        if (b->at < KERNEL_BASE && b->at >= VDSO_LOWEST)
            find_vdso(r, vdso, b);
    }
}

// --- owners -----------------------------------------------------------------

static void add_owner(struct oracle_check *check, const struct reading *r,
                      const struct path *root)
{
    struct oracle_owner *o = &check->owners[check->owner_count++];
    o->instructions = root->instructions;
    if (root->kind == ROOT_INTERRUPT)
        snprintf(o->name, sizeof(o->name), "interrupt %#x", root->number);
    else if (root->kind == ROOT_PROGRAM)
        snprintf(o->name, sizeof(o->name), "%s in thread %u",
                 programs_name(&r->profile->samples.programs, root->program),
                 root->number);
    else if (root->kind == ROOT_FIRMWARE)
        snprintf(o->name, sizeof(o->name), "firmware, CPU %u", root->number);
    else if (root->kind == ROOT_START)
        snprintf(o->name, sizeof(o->name), "start-up and idle, CPU %u",
                 root->number);
    else
        snprintf(o->name, sizeof(o->name), "%s %u, in the kernel", root->name,
                 root->number);
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
        if (r->paths[i].parent == NONE)
            add_owner(check, r, &r->paths[i]);
    }
    qsort(check->owners, check->owner_count, sizeof(*check->owners),
          by_instructions);
}

// --- the file ---------------------------------------------------------------

bool oracle_is(const void *bytes, size_t size)
{
    return size >= strlen(MAGIC) && memcmp(bytes, MAGIC, strlen(MAGIC)) == 0;
}

static void read_end(struct reading *r, struct oracle_check *check)
{
    if (take(r, "total ")) {
        check->total = number(r, 10);
        check->sum = number(r, 10);
        return;
    }
    if (!take(r, "clock "))
        damaged(r, "an unknown line");
    check->readings = number(r, 10);
    take(r, "readings ");
    check->equal = number(r, 10);
    take(r, "equal ");
    check->wrong = number(r, 10);
    take(r, "wrong ");
    take(r, "-");
    number(r, 10);
    take(r, "halted ");
    number(r, 10);
    take(r, "idle ");
    check->idle = number(r, 10);
}

static void read_kernel(struct reading *r)
{
    struct image *m = &r->profile->samples.images.list[IMAGE_KERNEL];
    while (r->end - r->at > 2 && digit(r->at[0]) >= 0 && digit(r->at[1]) >= 0 &&
           m->build_id_size < sizeof(m->build_id)) {
        m->build_id[m->build_id_size++] =
            (uint8_t)(digit(r->at[0]) << 4 | digit(r->at[1]));
        r->at += 2;
    }
}

static void read_command(struct reading *r)
{
    struct perf_file *f = &r->profile->files[0];
    const char *from = r->at;
    while (r->at < r->end && *r->at != '\n')
        r->at++;
    snprintf(f->command, sizeof(f->command), "%.*s", (int)(r->at - from), from);
}

static void read_line(struct reading *r, struct oracle_check *check)
{
    if (take(r, "call "))
        read_path(r, true);
    else if (take(r, "entry ") || take(r, "signal "))
        read_path(r, false);
    else if (take(r, "root "))
        read_root(r);
    else if (take(r, "block "))
        read_block(r);
    else if (take(r, "run "))
        read_run(r);
    else if (take(r, "kernel "))
        read_kernel(r);
    else if (take(r, "command "))
        read_command(r);
    else
        read_end(r, check);
    end_line(r);
}

void oracle_read(struct profile *p, struct oracle_check *check,
                 const void *bytes, size_t size)
{
    struct reading r = { .name = p->path,
                         .at = (const char *)bytes + strlen(MAGIC),
                         .end = (const char *)bytes + size,
                         .profile = p };
    while (r.at < r.end)
        read_line(&r, check);
    if (!check->total)
        fail(1, "%s: has no counts: the machine was ended before its command",
             p->path);
    decode_blocks(&r);
    find_programs(&r);
    make_chains(&r);
    for (uint32_t i = 0; i < r.run_count; i++)
        count_run(&r, &r.runs[i]);
    check->counted = r.taken;
    list_owners(check, &r);
    for (uint32_t i = 0; i < r.block_count; i++) {
        free(r.blocks[i].offsets);
        free(r.blocks[i].code);
    }
    free(r.blocks);
    free(r.paths);
    free(r.runs);
}
