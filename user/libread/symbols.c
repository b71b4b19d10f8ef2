// Symbol tables: see user/libread/symbols.h. First the entries are collected in
// the input's order (by the reader for ELF or for nm's text); then they are
// sorted, duplicates and labels inside functions are dropped, and ends are
// computed.
#include "user/libread/symbols.h"
#include "lib/elf.h"
#include "lib/string.h"
#include "user/libread/sort.h"

// Flags of a symbol.
#define LABEL 1u   // not a function by its type
#define LOCAL 2u   // not visible outside its file
#define NO_SIZE 4u // `end` is an upper bound
#define DATA 8u    // only marks the end of the code before it (nm)

#define NAME_MAX_SIZE 1024u   // a longer name is truncated
#define SECTION_EXECUTABLE 4u // SHF_EXECINSTR
#define PAGE 4096u

struct image {
    const u8 *bytes;
    size_t size;
};

struct collector {
    struct symbol *table;
    u32 count, room;
};

// --- the image --------------------------------------------------------------

static bool image_has(const struct image *im, u64 offset, u64 size)
{
    return offset <= im->size && size <= im->size - offset;
}

// Copies a structure out of the image, which need not be aligned.
static bool image_get(const struct image *im, u64 offset, void *out,
                      size_t size)
{
    if (!image_has(im, offset, size))
        return false;
    memcpy(out, im->bytes + offset, size);
    return true;
}

static bool is_elf(const struct image *im)
{
    return im->size >= 4 && memcmp(im->bytes, ELF_MAGIC, 4) == 0;
}

// --- collecting -------------------------------------------------------------

static bool name_is_wanted(const char *name, u32 size)
{
    if (size == 0 || name[0] == '$')
        return false;
    return size < 2 || name[0] != '.' || name[1] != 'L';
}

static void collect(struct collector *c, u32 start, u32 end, const char *name,
                    u32 name_size, u8 flags)
{
    if (c->count == c->room)
        return;
    c->table[c->count++] = (struct symbol){ .start = start,
                                            .end = end,
                                            .name = name,
                                            .name_size = name_size,
                                            .flags = flags };
}

// --- ELF --------------------------------------------------------------------

struct elf_tables {
    struct elf_header header;
    struct elf_section symbols, strings;
};

static bool get_section(const struct image *im, const struct elf_header *h,
                        u32 index, struct elf_section *out)
{
    return index < h->shnum &&
           image_get(im, h->shoff + (u64)index * sizeof(*out), out,
                     sizeof(*out));
}

static enum symbols_status find_tables(const struct image *im,
                                       struct elf_tables *t)
{
    struct elf_header *h = &t->header;
    if (!image_get(im, 0, h, sizeof(*h)) || h->ident[4] != ELF_CLASS32 ||
        h->ident[5] != ELF_DATA_LSB || h->machine != ELF_MACHINE_386)
        return SYMBOLS_FOREIGN;
    if (h->shnum == 0)
        return SYMBOLS_STRIPPED;
    if (h->shentsize != sizeof(struct elf_section))
        return SYMBOLS_CORRUPT;

    u32 i = 0;
    do {
        if (!get_section(im, h, i, &t->symbols))
            return i < h->shnum ? SYMBOLS_CORRUPT : SYMBOLS_STRIPPED;
        i++;
    } while (t->symbols.type != ELF_SHT_SYMTAB);

    if (!get_section(im, h, t->symbols.link, &t->strings) ||
        t->strings.type == ELF_SHT_NOBITS ||
        !image_has(im, t->strings.offset, t->strings.size) ||
        !image_has(im, t->symbols.offset, t->symbols.size))
        return SYMBOLS_CORRUPT;
    return SYMBOLS_OK;
}

static void collect_elf_symbol(struct collector *c, const struct image *im,
                               const struct elf_tables *t,
                               const struct elf_symbol *sym)
{
    u32 type = sym->info & 0xf, binding = sym->info >> 4;
    if (type != ELF_STT_FUNC && type != ELF_STT_GNU_IFUNC &&
        type != ELF_STT_NOTYPE)
        return;

    struct elf_section home; // special indices are above shnum: no section
    if (!get_section(im, &t->header, sym->shndx, &home) ||
        !(home.flags & SECTION_EXECUTABLE) || sym->value < home.addr ||
        sym->value - home.addr >= home.size)
        return;
    u32 home_end = (u32)MIN((u64)home.addr + home.size, (u64)UINT32_MAX);

    if (sym->name >= t->strings.size)
        return;
    const char *name = (const char *)im->bytes + t->strings.offset + sym->name;
    u32 name_size =
        strnlen(name, MIN(t->strings.size - sym->name, NAME_MAX_SIZE));
    if (!name_is_wanted(name, name_size))
        return;

    u32 end = home_end;
    if (sym->size != 0 && sym->size < end - sym->value)
        end = sym->value + sym->size;
    collect(c, sym->value, end, name, name_size,
            (type == ELF_STT_NOTYPE ? LABEL : 0) | (binding == 0 ? LOCAL : 0) |
                (sym->size == 0 ? NO_SIZE : 0));
}

static enum symbols_status collect_elf(struct collector *c,
                                       const struct image *im)
{
    struct elf_tables t;
    enum symbols_status status = find_tables(im, &t);
    if (status != SYMBOLS_OK)
        return status;

    u32 count = t.symbols.size / sizeof(struct elf_symbol);
    for (u32 i = 0; i < count; i++) {
        struct elf_symbol sym;
        if (image_get(im, t.symbols.offset + (u64)i * sizeof(sym), &sym,
                      sizeof(sym)))
            collect_elf_symbol(c, im, &t, &sym);
    }
    return SYMBOLS_OK;
}

// --- nm's text --------------------------------------------------------------

// A line: address, size (only with nm -S), type letter, name.
struct nm_line {
    u32 start, size;
    char type;
    const char *name;
    u32 name_size;
};

struct text {
    const char *at, *end;
};

// Up to eight hexadecimal digits and the blank after them.
static bool take_hex(struct text *t, u32 *out)
{
    u64 value = 0;
    const char *p = t->at;
    for (; p < t->end && p - t->at <= 8 && *p != ' '; p++) {
        u32 lower = *p | 0x20;
        if (*p >= '0' && *p <= '9')
            value = value * 16 + (*p - '0');
        else if (lower >= 'a' && lower <= 'f')
            value = value * 16 + (lower - 'a' + 10);
        else
            return false;
    }
    if (p == t->at || p == t->end || *p != ' ' || value > UINT32_MAX)
        return false;
    *out = (u32)value;
    t->at = p + 1;
    return true;
}

// Returns the next line and removes it from the text.
static struct text next_line(struct text *t)
{
    const char *newline = memchr(t->at, '\n', t->end - t->at);
    struct text l = { t->at, newline ? newline : t->end };
    t->at = newline != NULL ? newline + 1 : t->end;
    return l;
}

static u32 count_lines(const void *text, size_t size)
{
    struct text t = { text, (const char *)text + size };
    u32 lines = 0;
    for (; t.at < t.end; lines++)
        next_line(&t);
    return lines;
}

// Parses one line and consumes it; false when it is not in nm's format.
static bool take_line(struct text *t, struct nm_line *line)
{
    struct text l = next_line(t);

    line->size = 0;
    if (!take_hex(&l, &line->start))
        return false;
    // A type letter may look like a digit (b, d): a size has more than one.
    if (l.end - l.at > 1 && l.at[1] != ' ' && !take_hex(&l, &line->size))
        return false;
    if (l.end - l.at < 3 || l.at[1] != ' ')
        return false;
    line->type = l.at[0];
    line->name = l.at + 2;
    line->name_size =
        (u32)MIN((size_t)(l.end - line->name), (size_t)NAME_MAX_SIZE);
    return true;
}

static bool is_nm_text(const struct image *im)
{
    struct text t = { (const char *)im->bytes,
                      (const char *)im->bytes + im->size };
    struct nm_line line;
    return im->size > 0 && take_line(&t, &line);
}

static u8 nm_flags(const struct nm_line *line)
{
    switch (line->type) {
    case 'T':
    case 'W':
    case 'i':
        return 0;
    case 't':
    case 'w':
        return LOCAL;
    default:
        return DATA;
    }
}

static enum symbols_status collect_nm(struct collector *c,
                                      const struct image *im)
{
    struct text t = { (const char *)im->bytes,
                      (const char *)im->bytes + im->size };
    while (t.at < t.end) {
        struct nm_line line;
        if (!take_line(&t, &line) || !name_is_wanted(line.name, line.name_size))
            continue;
        u32 end = UINT32_MAX;
        u8 flags = nm_flags(&line) | NO_SIZE;
        if (line.size != 0 && line.size <= UINT32_MAX - line.start) {
            end = line.start + line.size;
            flags &= ~NO_SIZE;
        }
        collect(c, line.start, end, line.name, line.name_size, flags);
    }
    return SYMBOLS_OK;
}

// --- sorting ----------------------------------------------------------------

static bool name_is_less(const struct symbol *a, const struct symbol *b)
{
    if (a->name_size != b->name_size)
        return a->name_size < b->name_size;
    return memcmp(a->name, b->name, a->name_size) < 0;
}

// By address; for equal addresses the name to be kept is first.
static bool symbol_is_less(const void *left, const void *right)
{
    const struct symbol *a = left, *b = right;
    if (a->start != b->start)
        return a->start < b->start;
    u8 rank_a = a->flags & (DATA | LABEL), rank_b = b->flags & (DATA | LABEL);
    if (rank_a != rank_b)
        return rank_a < rank_b;
    if ((a->flags & LOCAL) != (b->flags & LOCAL))
        return !(a->flags & LOCAL);
    return name_is_less(a, b);
}

// Keeps the first symbol of each address; it gets a size if a duplicate has
// one.
static u32 drop_doubles(struct symbol *table, u32 count)
{
    u32 kept = 0;
    for (u32 i = 0; i < count; i++) {
        struct symbol *last = kept > 0 ? &table[kept - 1] : NULL;
        if (!last || last->start != table[i].start) {
            table[kept++] = table[i];
        } else if ((last->flags & NO_SIZE) && !(table[i].flags & NO_SIZE)) {
            last->end = table[i].end;
            last->flags &= ~NO_SIZE;
        }
    }
    return kept;
}

// Drops labels inside functions of known size.
static u32 drop_inner_labels(struct symbol *table, u32 count)
{
    u32 kept = 0, covered = 0;
    for (u32 i = 0; i < count; i++) {
        struct symbol s = table[i];
        if ((s.flags & LABEL) && s.start < covered)
            continue;
        if (!(s.flags & (NO_SIZE | LABEL)))
            covered = MAX(covered, s.end);
        table[kept++] = s;
    }
    return kept;
}

// A symbol without a size ends where the next one starts. The last one of nm's
// text has no next one: it extends to the end of its page at most.
static u32 set_ends(struct symbol *table, u32 count)
{
    u32 kept = 0;
    for (u32 i = 0; i < count; i++) {
        struct symbol s = table[i];
        if ((s.flags & NO_SIZE) && i + 1 < count)
            s.end = MIN(s.end, table[i + 1].start);
        else if (s.end == UINT32_MAX)
            s.end = ALIGN_DOWN(s.start, PAGE) + (PAGE - 1);
        if (!(s.flags & DATA))
            table[kept++] = s;
    }
    return kept;
}

// Links each symbol to the nearest previous one that extends beyond its start.
// O(n): a symbol that this walk skips is never visited again.
static void set_enclosing(struct symbol *table, u32 count)
{
    for (u32 i = 0; i < count; i++) {
        u32 around = i > 0 ? i - 1 : SYMBOL_NONE;
        while (around != SYMBOL_NONE && table[around].end <= table[i].start)
            around = table[around].enclosing;
        table[i].enclosing = around;
    }
}

// --- the interface ----------------------------------------------------------

u32 symbols_room(const void *image, size_t size)
{
    struct image im = { image, size };
    if (is_elf(&im)) {
        struct elf_tables t;
        return find_tables(&im, &t) == SYMBOLS_OK
                   ? t.symbols.size / sizeof(struct elf_symbol)
                   : 0;
    }
    return is_nm_text(&im) ? count_lines(image, size) : 0;
}

enum symbols_status symbols_read(struct symbols *out, const void *image,
                                 size_t size, struct symbol *table, u32 room)
{
    struct image im = { image, size };
    struct collector c = { table, 0, room };
    enum symbols_status status = is_elf(&im)       ? collect_elf(&c, &im)
                                 : is_nm_text(&im) ? collect_nm(&c, &im)
                                                   : SYMBOLS_FOREIGN;

    sort(table, c.count, sizeof(*table), symbol_is_less);
    u32 count = drop_doubles(table, c.count);
    count = drop_inner_labels(table, count);
    count = set_ends(table, count);
    set_enclosing(table, count);
    *out = (struct symbols){ table, count };
    return status == SYMBOLS_OK && count == 0 ? SYMBOLS_STRIPPED : status;
}

// --- perf-PID.map -----------------------------------------------------------

// Names are in the text in the order of its lines.
static bool map_symbol_is_less(const void *left, const void *right)
{
    const struct symbol *a = left, *b = right;
    return a->start != b->start ? a->start < b->start : a->name > b->name;
}

static void collect_map_line(struct collector *c, struct text line)
{
    u32 start, size;
    if (!take_hex(&line, &start) || !take_hex(&line, &size) ||
        line.at == line.end)
        return;
    u32 name_size = (u32)MIN(line.end - line.at, (ptrdiff_t)NAME_MAX_SIZE);
    collect(c, start, start + MIN(size, UINT32_MAX - start), line.at, name_size,
            0);
}

u32 symbols_room_of_map(const void *text, size_t size)
{
    return count_lines(text, size);
}

void symbols_read_map(struct symbols *out, const void *text, size_t size,
                      struct symbol *table, u32 room)
{
    struct collector c = { table, 0, room };
    struct text t = { text, (const char *)text + size };
    while (t.at < t.end)
        collect_map_line(&c, next_line(&t));
    sort(table, c.count, sizeof(*table), map_symbol_is_less);
    u32 count = drop_doubles(table, c.count);
    set_enclosing(table, count);
    *out = (struct symbols){ table, count };
}

const struct symbol *symbols_find(const struct symbols *s, u32 address)
{
    u32 low = 0, high = s->count; // the last start <= address is below `high`
    while (low < high) {
        u32 middle = low + (high - low) / 2;
        if (s->table[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    u32 i = low > 0 ? low - 1 : SYMBOL_NONE;
    while (i != SYMBOL_NONE && s->table[i].end <= address)
        i = s->table[i].enclosing;
    return i != SYMBOL_NONE ? &s->table[i] : NULL;
}
