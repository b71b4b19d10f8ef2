#include "gprof_names.h"

#include "lib/elf.h"

#include <string.h>

struct file {
    uint8_t *bytes;
    size_t size;
};

static bool get(const struct file *f, uint64_t offset, void *out, size_t size)
{
    if (offset > f->size || size > f->size - offset)
        return false;
    memcpy(out, f->bytes + offset, size);
    return true;
}

// A name that is stored as the end of a longer one changes with it.
static bool change(char *name, size_t room)
{
    bool changed = false;

    for (size_t i = 0; i < room && name[i] != '\0'; i++) {
        if (name[i] == '.' && i > 0) {
            name[i] = '_';
            changed = true;
        }
    }
    return changed;
}

static uint32_t change_table(struct file *f, const struct elf_section *symbols,
                             const struct elf_section *strings)
{
    struct elf_symbol s;
    uint32_t changed = 0;

    if (strings->offset > f->size || strings->size > f->size - strings->offset)
        return 0;
    for (uint32_t at = 0; symbols->size - at >= sizeof(s); at += sizeof(s)) {
        if (!get(f, (uint64_t)symbols->offset + at, &s, sizeof(s)))
            break;
        if ((s.info & 0xf) == ELF_STT_FUNC && s.name < strings->size)
            changed += change((char *)f->bytes + strings->offset + s.name,
                              strings->size - s.name);
    }
    return changed;
}

uint32_t gprof_names(uint8_t *elf, size_t size)
{
    struct file f = { elf, size };
    struct elf_header h;
    struct elf_section symbols, strings;
    uint32_t changed = 0;

    if (!get(&f, 0, &h, sizeof(h)) || memcmp(h.ident, ELF_MAGIC, 4) != 0 ||
        h.ident[4] != ELF_CLASS32)
        return 0;
    for (uint32_t i = 0; i < h.shnum; i++) {
        uint64_t at = h.shoff + (uint64_t)i * sizeof(symbols);
        if (get(&f, at, &symbols, sizeof(symbols)) &&
            symbols.type == ELF_SHT_SYMTAB && symbols.link < h.shnum &&
            get(&f, h.shoff + (uint64_t)symbols.link * sizeof(strings),
                &strings, sizeof(strings)))
            changed += change_table(&f, &symbols, &strings);
    }
    return changed;
}
