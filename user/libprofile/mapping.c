#include "mapping.h"

#include "lib/build_id.h"
#include "lib/elf.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE 4096u
#define HEAD_BYTES 16384u // of a file, which hold its headers and notes

static void find_code(struct mapping *m, const struct elf_segment *s)
{
    uint32_t low = s->vaddr & -PAGE;
    m->address = low;
    m->size = ((s->vaddr + s->memsz + PAGE - 1) & -PAGE) - low;
    m->file_offset = s->offset & -PAGE;
}

static void find_id(struct mapping *m, const struct elf_segment *s,
                    const char *bytes, size_t size)
{
    if (m->build_id_size == 0 && s->offset <= size &&
        s->filesz <= size - s->offset)
        m->build_id_size =
            build_id_find(bytes + s->offset, s->filesz, m->build_id);
}

bool mapping_find(struct mapping *m, const void *bytes, size_t size)
{
    const char *at = bytes;
    struct elf_header h;
    struct elf_segment s;
    *m = (struct mapping){ 0 };
    if (size < sizeof(h))
        return false;
    memcpy(&h, at, sizeof(h));
    if (memcmp(h.ident, ELF_MAGIC, 4) != 0 || h.ident[4] != ELF_CLASS32 ||
        h.machine != ELF_MACHINE_386)
        return false;
    for (uint32_t i = 0; i < h.phnum; i++) {
        uint64_t offset = h.phoff + (uint64_t)i * sizeof(s);
        if (offset + sizeof(s) > size)
            break;
        memcpy(&s, at + offset, sizeof(s));
        if (s.type == ELF_PT_NOTE)
            find_id(m, &s, at, size);
        if (s.type == ELF_PT_LOAD && s.flags & ELF_PF_X && m->size == 0)
            find_code(m, &s);
    }
    return m->size > 0;
}

bool mapping_has_id(const struct mapping *m, const void *id, uint32_t size)
{
    return m->build_id_size == size && memcmp(m->build_id, id, size) == 0;
}

bool mapping_read(struct mapping *m, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char *bytes = malloc(HEAD_BYTES);
    ssize_t n = fd >= 0 && bytes ? read(fd, bytes, HEAD_BYTES) : -1;
    bool found = n > 0 && mapping_find(m, bytes, n);
    if (!found)
        *m = (struct mapping){ 0 };
    free(bytes);
    if (fd >= 0)
        close(fd);
    return found;
}
