// The lines of tools/oracle's files (oracle.c).
#include "oracle_reading.h"

#include <stdlib.h>
#include <string.h>

_Noreturn void oracle_damaged(const struct reading *r, const char *why)
{
    fail(1, "%s: damaged: %s", r->name, why);
}

void *oracle_grown(const struct reading *r, void *list, uint32_t *room,
                   size_t size)
{
    *room = *room ? 2 * *room : 1024;
    list = realloc(list, *room * size);
    if (!list)
        fail(1, "%s: not enough memory", r->name);
    return list;
}

// --- words ------------------------------------------------------------------

bool oracle_take(struct reading *r, const char *word)
{
    size_t size = strlen(word);
    if ((size_t)(r->end - r->at) < size || memcmp(r->at, word, size) != 0)
        return false;
    r->at += size;
    return true;
}

int oracle_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

uint64_t oracle_number(struct reading *r, unsigned base)
{
    const char *from = r->at;
    uint64_t value = 0;
    while (r->at < r->end && oracle_digit(*r->at) >= 0 &&
           oracle_digit(*r->at) < (int)base)
        value = value * base + (unsigned)oracle_digit(*r->at++);
    if (r->at == from)
        oracle_damaged(r, "a number is missing");
    while (r->at < r->end && *r->at == ' ')
        r->at++;
    return value;
}

static void end_line(struct reading *r)
{
    if (r->at == r->end || *r->at != '\n')
        oracle_damaged(r, "a line has not its form");
    r->at++;
}

// --- paths ------------------------------------------------------------------

static struct path *new_path(struct reading *r)
{
    if (oracle_number(r, 10) != r->path_count)
        oracle_damaged(r, "the paths are not in order");
    if (r->path_count == r->path_room)
        r->paths = oracle_grown(r, r->paths, &r->path_room, sizeof(*r->paths));
    struct path *p = &r->paths[r->path_count++];
    *p = (struct path){ .parent = NONE };
    return p;
}

static void read_idle(struct reading *r, struct path *p)
{
    p->waits = (uint32_t)oracle_number(r, 10);
    p->halted_ns = oracle_number(r, 10);
    if (p->waits >= r->path_count - 1 || r->paths[p->waits].parent != NONE ||
        r->paths[p->waits].kind == ROOT_IDLE)
        oracle_damaged(r, "idle time after an unknown path");
}

static void read_root(struct reading *r)
{
    static const struct {
        const char *name;
        enum root_kind kind;
    } kinds[] = { { "firmware of CPU", ROOT_FIRMWARE },
                  { "start-up of CPU", ROOT_START },
                  { "kernel thread", ROOT_THREAD },
                  { "task", ROOT_TASK },
                  { "interrupt", ROOT_INTERRUPT },
                  { "program", ROOT_PROGRAM },
                  { "thread", ROOT_PROGRAM },
                  { "idle ", ROOT_IDLE },
                  { "firmware", ROOT_CODE },
                  { "kernel", ROOT_CODE } };
    struct path *p = new_path(r);
    p->number = (uint32_t)oracle_number(r, 10);
    p->root = r->path_count - 1;
    p->image = IMAGE_UNKNOWN;
    p->program = PROGRAM_NONE;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (oracle_take(r, kinds[i].name)) {
            p->kind = kinds[i].kind;
            p->name = kinds[i].name;
            if (p->kind == ROOT_IDLE)
                read_idle(r, p);
            return;
        }
    }
    oracle_damaged(r, "a root of an unknown kind");
}

static void read_path(struct reading *r, bool is_call)
{
    struct path *p = new_path(r);
    p->parent = (uint32_t)oracle_number(r, 10);
    if (p->parent >= r->path_count - 1)
        oracle_damaged(r, "a path comes before its parent");
    p->address = (uint32_t)oracle_number(r, 16) - is_call;
    p->root = r->paths[p->parent].root;
    oracle_number(r, 16);
}

static void read_block(struct reading *r)
{
    if (oracle_number(r, 10) != r->block_count)
        oracle_damaged(r, "the blocks are not in order");
    if (r->block_count == r->block_room)
        r->blocks =
            oracle_grown(r, r->blocks, &r->block_room, sizeof(*r->blocks));
    struct block *b = &r->blocks[r->block_count++];
    *b = (struct block){ .at = (uint32_t)oracle_number(r, 16), .bytes = r->at };
    while (r->at < r->end && oracle_digit(*r->at) >= 0)
        r->at++;
    b->size = (uint32_t)(r->at - b->bytes) / 2;
    b->offsets = malloc((b->size + 1) * sizeof(*b->offsets));
    if (!b->offsets)
        fail(1, "%s: not enough memory", r->name);
    while (oracle_take(r, " ") || oracle_take(r, ",")) {
        if (b->insns == b->size)
            oracle_damaged(r, "a block has too many instructions");
        b->offsets[b->insns++] = (uint32_t)oracle_number(r, 16);
    }
}

static void read_run(struct reading *r)
{
    if (r->run_count == r->run_room)
        r->runs = oracle_grown(r, r->runs, &r->run_room, sizeof(*r->runs));
    struct run *run = &r->runs[r->run_count++];
    run->path = (uint32_t)oracle_number(r, 10);
    run->block = (uint32_t)oracle_number(r, 10);
    run->count = oracle_number(r, 10);
    run->cuts = r->at;
    if (run->path >= r->path_count || run->block >= r->block_count)
        oracle_damaged(r, "a run of an unknown path or block");
    while (r->at < r->end && *r->at != '\n')
        r->at++;
}

// --- other lines -------------------------------------------------------------

static void read_end(struct reading *r, struct oracle_check *check)
{
    if (oracle_take(r, "total ")) {
        check->total = oracle_number(r, 10);
        check->sum = oracle_number(r, 10);
        return;
    }
    if (oracle_take(r, "folded ")) {
        check->folded = oracle_number(r, 10);
        return;
    }
    if (oracle_take(r, "end")) {
        check->ended = true;
        return;
    }
    if (!oracle_take(r, "clock "))
        oracle_damaged(r, "an unknown line");
    check->readings = oracle_number(r, 10);
    oracle_take(r, "readings ");
    check->equal = oracle_number(r, 10);
    oracle_take(r, "equal ");
    check->wrong = oracle_number(r, 10);
    oracle_take(r, "wrong ");
    bool negative = oracle_take(r, "-");
    check->off = (int64_t)oracle_number(r, 10) * (negative ? -1 : 1);
    oracle_take(r, "halted ");
    oracle_number(r, 10);
    oracle_take(r, "idle ");
    check->idle = oracle_number(r, 10);
}

static void read_kernel(struct reading *r)
{
    struct image *m = &r->profile->samples.images.list[IMAGE_KERNEL];
    while (r->end - r->at > 2 && oracle_digit(r->at[0]) >= 0 &&
           oracle_digit(r->at[1]) >= 0 &&
           m->build_id_size < sizeof(m->build_id)) {
        m->build_id[m->build_id_size++] =
            (uint8_t)(oracle_digit(r->at[0]) << 4 | oracle_digit(r->at[1]));
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
    if (oracle_take(r, "call "))
        read_path(r, true);
    else if (oracle_take(r, "entry ") || oracle_take(r, "signal "))
        read_path(r, false);
    else if (oracle_take(r, "root "))
        read_root(r);
    else if (oracle_take(r, "block "))
        read_block(r);
    else if (oracle_take(r, "run "))
        read_run(r);
    else if (oracle_take(r, "flat"))
        r->flat = check->flat = true;
    else if (oracle_take(r, "kernel "))
        read_kernel(r);
    else if (oracle_take(r, "command "))
        read_command(r);
    else
        read_end(r, check);
    end_line(r);
}

void oracle_parse(struct reading *r, struct oracle_check *check)
{
    while (r->at < r->end)
        read_line(r, check);
}
