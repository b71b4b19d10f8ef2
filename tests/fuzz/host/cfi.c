// user/libread/cfi.c, cfi_sections.c and row_cache.c: reads sections of call
// frame information and whole ELF files, and finds a row at each edge of every
// function.
#include "host.h"

#include <string.h>

#include "user/libread/cfi.h"
#include "user/libread/row_cache.h"

#define ENTRIES_MAX 1024u

static struct cfi_entry entries[ENTRIES_MAX];
static struct row_cache cache;

static void check_row(const struct cfi_program *p, const struct cfi_entry *e,
                      u32 pc)
{
    struct cfi_row row, again;
    bool known = cfi_row_at(&p->sections[e->section], e, pc, &row);
    REQUIRE(row.start <= pc && pc < row.end);
    REQUIRE(e->start <= row.start && row.end <= e->end);
    REQUIRE(cfi_row_at(&p->sections[e->section], e, row.end - 1, &again) ==
            known);
    REQUIRE(again.start == row.start && again.end == row.end);
    const struct cfi_row *cached = row_cache_find(&cache, p, pc);
    REQUIRE((cached != NULL) == known);
    if (!known)
        return;
    REQUIRE(again.cfa_offset == row.cfa_offset && again.by_ebp == row.by_ebp &&
            again.cfa_loaded == row.cfa_loaded);
    REQUIRE(cached->start == row.start && cached->end == row.end &&
            cached->cfa_offset == row.cfa_offset);
}

static void check_entries(const struct cfi_program *p)
{
    for (u32 i = 0; i < p->count; i++) {
        const struct cfi_entry *e = &p->entries[i];
        REQUIRE(e->start < e->end);
        REQUIRE(!i || e[-1].end <= e->start);
        REQUIRE(cfi_find(p->entries, p->count, e->start) == e);
        REQUIRE(cfi_find(p->entries, p->count, e->end - 1) == e);
        check_row(p, e, e->start);
        check_row(p, e, e->start + (e->end - e->start) / 2);
        check_row(p, e, e->end - 1);
    }
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
    if (size < 5)
        return 0;
    u8 *bytes = guarded(data + 5, size -= 5), *unpacked[CFI_SECTIONS] = { 0 };
    static u32 id;
    struct cfi_program p = { .entries = entries, .id = ++id ? id : ++id };
    u32 sections = 1, count = 0;
    p.sections[0] = (struct cfi_section){ bytes, (u32)size, 0, data[0] & 1, 0 };
    memcpy(&p.sections[0].address, data + 1, 4);
    if (data[0] & 2)
        sections = cfi_sections(bytes, size, p.sections);
    REQUIRE(sections <= CFI_SECTIONS);
    for (u32 i = 0; i < sections; i++) {
        u32 contents = p.sections[i].unpacked_size;
        if (contents)
            cfi_unpack(&p.sections[i], unpacked[i] = malloc(contents));
        u32 has = cfi_entries(&p.sections[i], i, entries + count,
                              ENTRIES_MAX - count);
        REQUIRE(has <= MAX(size, contents));
        count += MIN(has, ENTRIES_MAX - count);
    }
    p.count = cfi_sort(entries, count);
    REQUIRE(p.count <= count);
    check_entries(&p);
    for (u32 i = 0; i < CFI_SECTIONS; i++)
        free(unpacked[i]);
    free(bytes);
    return 0;
}
