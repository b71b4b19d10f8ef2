// Finds the two sections of an ELF file that hold call frame information.
#include "lib/assert.h"
#include "lib/elf.h"
#include "lib/string.h"
#include "user/libread/cfi.h"

#include <zlib.h>

// Contents are at most so many times as large as what deflate makes of them.
#define DEFLATE_RATIO_MAX 1032u

static bool inside(size_t size, u32 offset, u64 length)
{
    return offset <= size && length <= size - offset;
}

static bool name_is(const u8 *names, u32 size, u32 at, const char *name)
{
    size_t length = strlen(name) + 1;
    return at < size && length <= size - at &&
           !memcmp(names + at, name, length);
}

// Writes a section of the file. False: it has no contents, or none that can be
// read.
static bool take_section(const u8 *bytes, size_t size,
                         const struct elf_section *s, bool eh,
                         struct cfi_section *out)
{
    struct elf_compression c = { .size = 0 };
    u32 head = s->flags & ELF_SHF_COMPRESSED ? sizeof(c) : 0;
    if (s->type == ELF_SHT_NOBITS || s->size <= head ||
        !inside(size, s->offset, s->size))
        return false;
    memcpy(&c, bytes + s->offset, head);
    if (head && (c.type != ELF_COMPRESS_ZLIB || !c.size ||
                 c.size / DEFLATE_RATIO_MAX > s->size))
        return false;
    *out = (struct cfi_section){ bytes + s->offset + head, s->size - head,
                                 s->addr, eh, c.size };
    return true;
}

void cfi_unpack(struct cfi_section *s, u8 *out)
{
    assert(s->unpacked_size);
    uLongf size = s->unpacked_size;
    bool whole = uncompress(out, &size, s->bytes, s->size) == Z_OK &&
                 size == s->unpacked_size;
    s->bytes = out;
    s->size = whole ? s->unpacked_size : 0;
    s->unpacked_size = 0;
}

u32 cfi_sections(const void *image, size_t size,
                 struct cfi_section out[CFI_SECTIONS])
{
    const u8 *bytes = image;
    struct elf_header h;
    struct elf_section s, names;
    u32 n = 0;
    if (size < sizeof(h))
        return 0;
    memcpy(&h, bytes, sizeof(h));
    if (memcmp(h.ident, ELF_MAGIC, 4) || h.ident[4] != ELF_CLASS32 ||
        h.shentsize != sizeof(s) || h.shstrndx >= h.shnum ||
        !inside(size, h.shoff, (u64)h.shnum * sizeof(s)))
        return 0;
    memcpy(&names, bytes + h.shoff + h.shstrndx * sizeof(s), sizeof(names));
    if (!inside(size, names.offset, names.size))
        return 0;
    for (u32 i = 0; i < h.shnum && n < CFI_SECTIONS; i++) {
        memcpy(&s, bytes + h.shoff + i * sizeof(s), sizeof(s));
        const u8 *text = bytes + names.offset;
        bool eh = name_is(text, names.size, s.name, ".eh_frame");
        if (!eh && !name_is(text, names.size, s.name, ".debug_frame"))
            continue;
        n += take_section(bytes, size, &s, eh, &out[n]);
    }
    return n;
}
