// Reading an image: its symbols, call frame information and code.
#include "images.h"

#include "lib/elf.h"
#include "user/libread/call_chain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *load_symbols(struct image *m, size_t size)
{
    static const char *const why[] = {
        [SYMBOLS_STRIPPED] = "no symbols (stripped?)",
        [SYMBOLS_CORRUPT] = "its symbol table is corrupt",
        [SYMBOLS_FOREIGN] = "not an ELF program for i386",
    };
    uint32_t room = symbols_room(m->bytes, size);
    m->symbol_table = calloc(room + 1, sizeof(struct symbol));
    if (!m->symbol_table)
        return "not enough memory for its symbols";
    enum symbols_status status =
        symbols_read(&m->symbols, m->bytes, size, m->symbol_table, room);
    m->stripped = status == SYMBOLS_STRIPPED;
    return status == SYMBOLS_OK ? NULL : why[status];
}

// Without memory for it, a section is left out.
static uint32_t find_sections(struct image *m, size_t size)
{
    struct cfi_section *s = m->frames.sections;
    uint32_t count = cfi_sections(m->bytes, size, s);
    for (uint32_t i = 0; i < count; i++) {
        if (s[i].unpacked_size == 0)
            continue;
        m->unpacked[i] = malloc(s[i].unpacked_size);
        if (m->unpacked[i])
            cfi_unpack(&s[i], m->unpacked[i]);
        else
            s[i].size = 0;
    }
    return count;
}

// Without memory for them, callers are found by frame pointers alone.
static void load_frames(struct image *m, uint32_t number, size_t size)
{
    struct cfi_program *f = &m->frames;
    uint32_t sections = find_sections(m, size), room = 0;
    for (uint32_t s = 0; s < sections; s++)
        room += cfi_entries(&f->sections[s], s, NULL, 0);
    struct cfi_entry *entries = calloc(room + 1, sizeof(*entries));
    if (!entries)
        return;
    uint32_t count = 0;
    for (uint32_t s = 0; s < sections; s++)
        count += cfi_entries(&f->sections[s], s, entries + count, room - count);
    m->frame_table = entries;
    f->entries = entries;
    f->count = cfi_sort(entries, count);
    f->id = number + 1; // constant: an image's number does not change
}

static void find_code(struct image *m, size_t size)
{
    struct elf_header h;
    struct elf_segment s;
    if (size < sizeof(h))
        return;
    memcpy(&h, m->bytes, sizeof(h));
    if (memcmp(h.ident, ELF_MAGIC, 4) != 0)
        return;
    m->entry = h.entry;
    for (uint32_t i = 0; i < h.phnum && m->code_size == 0; i++) {
        uint64_t at = h.phoff + (uint64_t)i * sizeof(s);
        if (at + sizeof(s) > size)
            return;
        memcpy(&s, (const char *)m->bytes + at, sizeof(s));
        if (s.type != ELF_PT_LOAD || !(s.flags & ELF_PF_X) || s.offset > size ||
            s.filesz > size - s.offset)
            continue;
        m->code = (const uint8_t *)m->bytes + s.offset;
        m->code_address = s.vaddr;
        m->code_size = s.filesz;
    }
}

// Gives the chain marks their names.
static void make_marks(struct image *m)
{
    static const struct symbol marks[] = {
#define MARK(mark, text) \
    { mark - 1, mark, text, sizeof(text) - 1, SYMBOL_NONE, 0 }
        MARK(CHAIN_DEEP, "[deeper than 127 frames]"),
        MARK(CHAIN_UNREADABLE, "[stack not readable]"),
        MARK(CHAIN_BROKEN, "[callers not found]"),
        MARK(CHAIN_SHORT, "[beyond the copy of the stack]"),
    };
    m->symbols = (struct symbols){ marks, sizeof(marks) / sizeof(marks[0]) };
    m->problem = NULL;
}

// Whether the file that was read has another build id than the file that ran.
static bool was_replaced(const struct image *m, size_t size)
{
    struct mapping now;
    return m->build_id_size > 0 && mapping_find(&now, m->bytes, size) &&
           !mapping_has_id(&now, m->build_id, m->build_id_size);
}

// Reads the held file, which is the file that ran. If none is held, reads the
// file at the path, provided that its build id matches. (A finder checks the
// build id itself.)
static void read_file(struct images *i, struct image *m, size_t *size)
{
    char path[IMAGES_HELD_PATH];
    m->problem = "cannot read its file";
    if (i->find) {
        m->bytes = i->find(i->find_arg, m, size, &m->problem);
        return;
    }
    m->bytes = i->read(images_held_path(m, path), size);
    if (!m->bytes || m->held >= 0 || !was_replaced(m, *size))
        return;
    m->problem = "another file has taken its place (the build id differs)";
    free(m->bytes);
    m->bytes = NULL;
}

// Whether the file at the path is the file that ran. If not, the PATH.sym
// beside it does not describe the image.
static bool is_in_place(const struct image *m)
{
    char path[IMAGES_HELD_PATH];
    struct stat ran, there;
    return m->held < 0 || stat(m->path, &there) < 0 ||
           (stat(images_held_path(m, path), &ran) == 0 &&
            ran.st_dev == there.st_dev && ran.st_ino == there.st_ino);
}

// Reads PATH.sym, the output of `nm` for the file.
static void read_beside(const struct images *i, struct image *m)
{
    char *beside = malloc(strlen(m->path) + sizeof(".sym"));
    struct image text = { 0 };
    size_t size = 0;
    if (beside)
        text.bytes = i->read(strcat(strcpy(beside, m->path), ".sym"), &size);
    free(beside);
    if (!text.bytes || load_symbols(&text, size)) {
        images_unload(&text);
        return;
    }
    // Symbol names are in the text; call frame information is in the file.
    free(m->symbol_table);
    m->text = text.bytes;
    m->symbols = text.symbols;
    m->symbol_table = text.symbol_table;
    m->problem = NULL;
}

// Reads the map that a program with a JIT compiler writes for profilers.
static void read_jit(const struct images *i, struct image *m)
{
    char path[40];
    size_t size;
    m->problem = NULL; // without a map its addresses are shown
    snprintf(path, sizeof(path), "/tmp/perf-%u.map", m->jit_task);
    m->bytes = i->read(path, &size);
    if (!m->bytes)
        return;
    uint32_t room = symbols_room_of_map(m->bytes, size);
    m->symbol_table = calloc(room + 1, sizeof(struct symbol));
    if (!m->symbol_table)
        return;
    symbols_read_map(&m->symbols, m->bytes, size, m->symbol_table, room);
    snprintf(path, sizeof(path), "[JIT] task %u", m->jit_task);
    char *name = strdup(path);
    if (!name)
        return;
    free(m->path);
    m->path = name;
}

void images_read(struct images *i, struct image *m)
{
    size_t size = 0;
    m->loaded = true;
    if (m == &i->list[IMAGE_CUT]) {
        make_marks(m);
        return;
    }
    if (m->jit_task != 0) {
        read_jit(i, m);
        return;
    }
    read_file(i, m, &size);
    bool in_place = is_in_place(m);
    if (m->bytes) {
        m->problem = load_symbols(m, size);
        load_frames(m, (uint32_t)(m - i->list), size);
        find_code(m, size);
    }
    if (m->problem && !i->find && in_place)
        read_beside(i, m);
    images_release(i, m);
}
