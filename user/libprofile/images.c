#include "images.h"

#include "lib/chain.h"
#include "lib/elf.h"

#include <stdlib.h>
#include <string.h>

int images_init(struct images *i, image_reader read)
{
    static const char *const fixed[IMAGES_FIXED] = {
        [IMAGE_KERNEL] = "[kernel]",
        [IMAGE_VDSO] = "[vdso]",
        [IMAGE_UNKNOWN] = "[unknown]",
        [IMAGE_CUT] = "[cut]",
    };
    *i = (struct images){ .read = read };
    for (uint32_t n = 0; n < IMAGES_FIXED; n++) {
        images_add(i, fixed[n], NULL, 0);
        if (i->count != n + 1) {
            images_free(i);
            return -1;
        }
    }
    return 0;
}

static void unload(struct image *m)
{
    free(m->bytes);
    free(m->text);
    free(m->symbol_table);
    free(m->frame_table);
}

void images_free(struct images *i)
{
    for (uint32_t n = 0; n < i->count; n++) {
        unload(&i->list[n]);
        free(i->list[n].path);
    }
    free(i->list);
    free(i->rows);
    *i = (struct images){ 0 };
}

uint32_t images_add(struct images *i, const char *path, const void *build_id,
                    uint32_t build_id_size)
{
    if (path[0] == '\0' || build_id_size > sizeof(i->list->build_id))
        return IMAGE_UNKNOWN;
    for (uint32_t n = 0; n < i->count; n++) {
        const struct image *m = &i->list[n];
        if (m->build_id_size == build_id_size && strcmp(m->path, path) == 0 &&
            (build_id_size == 0 ||
             memcmp(m->build_id, build_id, build_id_size) == 0))
            return n;
    }
    if (i->count == i->room) {
        uint32_t room = i->room * 2 + 16;
        void *list = realloc(i->list, room * sizeof(*i->list));
        if (list == NULL)
            return IMAGE_UNKNOWN;
        i->list = list;
        i->room = room;
    }
    struct image *m = &i->list[i->count];
    *m = (struct image){ .path = strdup(path), .build_id_size = build_id_size };
    if (m->path == NULL)
        return IMAGE_UNKNOWN;
    if (build_id_size > 0)
        memcpy(m->build_id, build_id, build_id_size);
    return i->count++;
}

static const char *load_symbols(struct image *m, size_t size)
{
    static const char *const why[] = {
        [SYMBOLS_STRIPPED] = "it has no symbols (was it stripped?)",
        [SYMBOLS_CORRUPT] = "its symbol table is corrupt",
        [SYMBOLS_FOREIGN] = "it is not an ELF program for i386",
    };
    uint32_t room = symbols_room(m->bytes, size);
    m->symbol_table = calloc(room + 1, sizeof(struct symbol));
    if (m->symbol_table == NULL)
        return "there is not enough memory for its symbols";
    enum symbols_status status =
        symbols_read(&m->symbols, m->bytes, size, m->symbol_table, room);
    return status == SYMBOLS_OK ? NULL : why[status];
}

// Where there is no memory for them callers are found by frame pointers alone.
static void load_frames(struct image *m, uint32_t number, size_t size)
{
    struct cfi_program *f = &m->frames;
    uint32_t sections = cfi_sections(m->bytes, size, f->sections), room = 0;
    for (uint32_t s = 0; s < sections; s++)
        room += cfi_entries(&f->sections[s], s, NULL, 0);
    struct cfi_entry *entries = calloc(room + 1, sizeof(*entries));
    if (entries == NULL)
        return;
    uint32_t count = 0;
    for (uint32_t s = 0; s < sections; s++)
        count += cfi_entries(&f->sections[s], s, entries + count, room - count);
    m->frame_table = entries;
    f->entries = entries;
    f->count = cfi_sort(entries, count);
    f->id = number + 1; // an image has its number for good
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

// What the marks in a chain are called.
static void make_marks(struct image *m)
{
    static const struct symbol marks[] = {
#define MARK(mark, text) \
    { mark - 1, mark, text, sizeof(text) - 1, SYMBOL_NONE, 0 }
        MARK(CHAIN_DEEP, "[deeper than 127 frames]"),
        MARK(CHAIN_UNREADABLE, "[stack not readable]"),
        MARK(CHAIN_BROKEN, "[callers not found]"),
    };
    m->symbols = (struct symbols){ marks, sizeof(marks) / sizeof(marks[0]) };
    m->problem = NULL;
}

// Whether the file at the path has another build id than what ran. (A finder
// looks by itself.)
static bool was_replaced(const struct image *m, size_t size)
{
    struct mapping now;
    return m->build_id_size > 0 && mapping_find(&now, m->bytes, size) &&
           (now.build_id_size != m->build_id_size ||
            memcmp(now.build_id, m->build_id, m->build_id_size) != 0);
}

// The program's own file, or what `nm` has printed of it into PATH.sym.
void images_read(const struct images *i, struct image *m)
{
    size_t size;
    m->loaded = true;
    if (m == &i->list[IMAGE_CUT]) {
        make_marks(m);
        return;
    }
    m->problem = "its file cannot be read";
    m->bytes = i->find != NULL ? i->find(i->find_arg, m, &size, &m->problem)
                               : i->read(m->path, &size);
    if (i->find == NULL && m->bytes != NULL && was_replaced(m, size)) {
        m->problem = "another file has taken its place (the build id differs)";
        m->replaced = true;
        free(m->bytes);
        m->bytes = NULL;
        return; // what lies beside it is the new one's, too
    }
    if (m->bytes != NULL) {
        m->problem = load_symbols(m, size);
        load_frames(m, (uint32_t)(m - i->list), size);
        find_code(m, size);
    }
    if (m->problem == NULL || i->find != NULL)
        return;
    char *beside = malloc(strlen(m->path) + sizeof(".sym"));
    struct image text = { 0 };
    if (beside != NULL) {
        strcat(strcpy(beside, m->path), ".sym");
        text.bytes = i->read(beside, &size);
    }
    free(beside);
    if (text.bytes == NULL || load_symbols(&text, size) != NULL) {
        unload(&text);
        return;
    }
    // Names lie in the text; the frames in the file.
    free(m->symbol_table);
    m->text = text.bytes;
    m->symbols = text.symbols;
    m->symbol_table = text.symbol_table;
    m->problem = NULL;
}

struct row_cache *images_rows(struct images *i)
{
    if (i->rows == NULL)
        i->rows = calloc(1, sizeof(*i->rows));
    return i->rows;
}

const struct symbol *images_symbol(struct images *i, uint32_t image,
                                   uint32_t address)
{
    const struct image *m = images_load(i, image);
    return m->problem == NULL ? symbols_find(&m->symbols, address) : NULL;
}
