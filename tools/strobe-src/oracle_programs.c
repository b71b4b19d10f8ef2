// Finds the programs of tools/oracle's files (oracle.c): their code is compared
// with the ELF files that struct elves lists.
#include "oracle_reading.h"

#include "lib/elf.h"

#include <stdlib.h>
#include <string.h>

#define VDSO_LOWEST 0xa0000000u // it is near the stack, programs are far below

// --- the vDSO ---------------------------------------------------------------

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

uint32_t oracle_vdso_of(const struct reading *r, uint32_t address)
{
    for (uint32_t i = 0; i < r->vdso_count; i++) {
        if (address - r->vdso_bases[i] < r->vdso_size)
            return r->vdso_bases[i];
    }
    return 0;
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
            b->code[j] = (uint8_t)(oracle_digit(b->bytes[2 * j]) << 4 |
                                   oracle_digit(b->bytes[2 * j + 1]));
        if (b->at < KERNEL_BASE && b->at >= VDSO_LOWEST)
            find_vdso(r, vdso, b);
    }
}

// --- blocks in a file -------------------------------------------------------

// How a program may have executed a file's code: at another address than in the
// file, if it is position-independent.
struct vote {
    uint32_t root, bias;
};

static void add_match(struct reading *r, struct matches *m, uint32_t block,
                      uint32_t bias)
{
    if (m->count == m->room) {
        uint32_t room = m->room;
        m->block = oracle_grown(r, m->block, &room, sizeof(*m->block));
        m->bias = oracle_grown(r, m->bias, &m->room, sizeof(*m->bias));
    }
    m->block[m->count] = block;
    m->bias[m->count++] = bias;
}

// Compares a block with a segment of the file: at its own address or, if the
// file may be at any page, at each that agrees with it within the page.
static void match_segment(struct reading *r, struct matches *m, uint32_t index,
                          const uint8_t *code, const struct elf_segment *s,
                          bool at_any_page)
{
    const struct block *b = &r->blocks[index];
    uint32_t offset = b->at - s->vaddr;
    if (at_any_page)
        offset &= 4095;
    for (; offset < s->filesz && s->filesz - offset >= b->size;
         offset += 4096) {
        if (memcmp(code + offset, b->code, b->size) == 0)
            add_match(r, m, index, b->at - s->vaddr - offset);
        if (!at_any_page)
            return;
    }
}

static void match_file(struct reading *r, struct matches *m,
                       const uint8_t *file, size_t size)
{
    struct elf_header h;
    struct elf_segment s;
    memcpy(&h, file, sizeof(h));
    for (uint32_t i = 0; i < h.phnum; i++) {
        size_t at = h.phoff + (size_t)i * sizeof(s);
        if (at + sizeof(s) > size)
            return;
        memcpy(&s, file + at, sizeof(s));
        if (s.type != ELF_PT_LOAD || !(s.flags & ELF_PF_X) ||
            (uint64_t)s.offset + s.filesz > size)
            continue;
        for (uint32_t j = 0; j < r->block_count; j++) {
            if (r->blocks[j].at < KERNEL_BASE)
                match_segment(r, m, j, file + s.offset, &s,
                              h.type == ELF_TYPE_DYN);
        }
    }
}

// --- programs ---------------------------------------------------------------

// A file that explains less of a program's own code, 1 of so many runs, agrees
// with it by chance. (Code that is made at run time is in no file.)
#define PART_LEAST 4u

// For each root the file that explains most of its runs, of which there are
// `runs` of its own code.
struct choice {
    uint32_t runs;
    uint32_t score, bias;
    size_t file, other; // `other` explains as many, if it is not NO_FILE
};
#define NO_FILE SIZE_MAX

static int by_root(const void *a, const void *b)
{
    const struct vote *x = a, *y = b;
    if (x->root != y->root)
        return x->root < y->root ? -1 : 1;
    return x->bias < y->bias ? -1 : x->bias > y->bias;
}

static bool same_build(const struct elf_file *a, const struct elf_file *b)
{
    return a->build_id_size && a->build_id_size == b->build_id_size &&
           memcmp(a->build_id, b->build_id, a->build_id_size) == 0;
}

static void consider(const struct reading *r, struct choice *c, size_t file,
                     uint32_t score, uint32_t bias)
{
    const struct elf_file *list = r->profile->elves.list;
    if (score > c->score)
        *c = (struct choice){ c->runs, score, bias, file, NO_FILE };
    else if (score == c->score && c->file != file && c->other == NO_FILE &&
             !same_build(&list[c->file], &list[file]))
        c->other = file;
}

// The vDSO is in every program, and in a file of its own.
static bool is_own_code(const struct reading *r, const struct run *run)
{
    uint32_t at = r->blocks[run->block].at;
    return at < KERNEL_BASE && !oracle_vdso_of(r, at);
}

// Counts for each root how many of its runs the file explains, by bias.
static void count_votes(struct reading *r, const struct matches *m, size_t file,
                        struct choice *choices)
{
    uint32_t *first = calloc(r->block_count + 2, sizeof(*first));
    struct vote *votes = NULL;
    uint32_t count = 0, room = 0;
    if (!first)
        fail(1, "%s: not enough memory", r->name);
    // The matches are in the order of blocks, within each segment.
    for (uint32_t i = 0; i < m->count; i++)
        first[m->block[i]] = i + 1;
    for (uint32_t i = 0; i < r->run_count; i++) {
        const struct run *run = &r->runs[i];
        for (uint32_t j = is_own_code(r, run) ? first[run->block] : 0;
             j-- > 0 && m->block[j] == run->block;) {
            if (count == room)
                votes = oracle_grown(r, votes, &room, sizeof(*votes));
            votes[count++] =
                (struct vote){ r->paths[run->path].root, m->bias[j] };
        }
    }
    if (count)
        qsort(votes, count, sizeof(*votes), by_root);
    for (uint32_t i = 0, j; i < count; i = j) {
        for (j = i; j < count && by_root(&votes[i], &votes[j]) == 0;)
            j++;
        consider(r, &choices[votes[i].root], file, j - i, votes[i].bias);
    }
    free(votes);
    free(first);
}

void oracle_match_files(struct reading *r,
                        void (*fn)(void *arg, size_t file,
                                   const struct matches *m),
                        void *arg)
{
    for (size_t i = 0; i < r->profile->elves.count; i++) {
        struct matches m = { 0 };
        size_t size;
        const uint8_t *file = file_map(r->profile->elves.list[i].path, &size);
        if (!file)
            continue;
        match_file(r, &m, file, size);
        file_unmap(file, size);
        if (m.count)
            fn(arg, i, &m);
        free(m.block);
        free(m.bias);
    }
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

void oracle_name_program(struct reading *r, struct path *root, size_t file,
                         uint32_t bias, uint32_t score)
{
    struct samples *s = &r->profile->samples;
    const struct elf_file *f = &r->profile->elves.list[file];
    struct program program = { .task = root->number + 1, .load_bias = bias };
    snprintf(program.name, sizeof(program.name), "%s", base_name(f->path));
    program.image =
        images_add(&s->images, f->path, f->build_id, f->build_id_size);
    program.time = s->programs.count;
    programs_add(&s->programs, &program);
    root->image = program.image;
    root->program = s->programs.count - 1;
    root->bias = bias;
    root->file = file;
    root->score = score;
}

void oracle_name_twin(struct reading *r, struct path *root, size_t file,
                      uint32_t score)
{
    const struct elf_file *list = r->profile->elves.list;
    if (score == root->score && !root->also && file != root->file &&
        !same_build(&list[file], &list[root->file]))
        root->also = base_name(list[file].path);
}

struct search {
    struct reading *r;
    struct choice *choices;
};

static void consider_file(void *arg, size_t file, const struct matches *m)
{
    const struct search *s = arg;
    count_votes(s->r, m, file, s->choices);
}

static void find_programs(struct reading *r)
{
    struct choice *choices = calloc(r->path_count + 1, sizeof(*choices));
    if (!choices)
        fail(1, "%s: not enough memory", r->name);
    for (uint32_t i = 0; i < r->run_count; i++)
        choices[r->paths[r->runs[i].path].root].runs +=
            is_own_code(r, &r->runs[i]);
    oracle_match_files(r, consider_file, &(struct search){ r, choices });
    for (uint32_t i = 0; i < r->path_count; i++) {
        struct path *p = &r->paths[i];
        const struct choice *c = &choices[i];
        if (p->parent != NONE || p->kind != ROOT_PROGRAM ||
            c->score < c->runs / PART_LEAST + 1)
            continue;
        oracle_name_program(r, p, c->file, c->bias, c->score);
        if (c->other != NO_FILE)
            oracle_name_twin(r, p, c->other, c->score);
    }
    for (uint32_t i = 0; i < r->path_count; i++) {
        struct path *p = &r->paths[i];
        if (p->parent == NONE && p->kind == ROOT_IDLE) {
            const struct path *waits = &r->paths[p->waits];
            p->image = waits->image;
            p->program = waits->program;
            p->bias = waits->bias;
            p->also = waits->also;
        }
    }
    free(choices);
}

void oracle_find_programs(struct reading *r)
{
    decode_blocks(r);
    if (r->flat)
        oracle_split_programs(r);
    else
        find_programs(r);
}
