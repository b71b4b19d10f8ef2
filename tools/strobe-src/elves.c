#define _GNU_SOURCE // asprintf, nftw
#include "elves.h"

#include "lib/build_id.h"
#include "lib/elf.h"
#include "user/libstrobe/map_rest.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX (1024ul * 1024 * 1024)
#define SEARCH_FILES 16 // folders open at once
#define SHT_NOTE 7

// --- one file ---------------------------------------------------------------

void *file_read(const char *path, size_t *size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    char *bytes = NULL;

    if (fd < 0)
        return NULL;
    if (fstat(fd, &st) == 0) {
        errno = S_ISDIR(st.st_mode) ? EISDIR : EFBIG;
        if (!S_ISDIR(st.st_mode) && (size_t)st.st_size <= FILE_MAX)
            bytes = malloc(st.st_size + 1);
    }
    *size = 0;
    while (bytes && *size < (size_t)st.st_size) {
        ssize_t n = read(fd, bytes + *size, st.st_size - *size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        *size += n;
    }
    close(fd);
    return bytes;
}

// A mapping cannot have 0 bytes, so an empty file is mapped as one zero byte.
const void *file_map(const char *path, size_t *size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    void *at = MAP_FAILED;

    if (fd < 0)
        return NULL;
    if (fstat(fd, &st) == 0) {
        *size = st.st_size;
        if (S_ISDIR(st.st_mode))
            errno = EISDIR;
        else if (*size > 0)
            at = mmap(NULL, *size, PROT_READ, MAP_PRIVATE, fd, 0);
        else
            at = mmap(NULL, 1, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    close(fd);
    if (at == MAP_FAILED)
        return NULL;
    forbid_rest(at, *size);
    return at;
}

void file_unmap(const void *bytes, size_t size)
{
    munmap((void *)bytes, size > 0 ? size : 1);
}

struct bytes {
    const uint8_t *at;
    size_t size;
};

static bool inside(const struct bytes *b, uint64_t offset, uint64_t size)
{
    return offset <= b->size && size <= b->size - offset;
}

static void look_at_section(struct elf_file *f, const struct bytes *b,
                            const struct elf_section *s, const char *name)
{
    if (strcmp(name, ".debug_line") == 0)
        f->lines = true;
    if (s->type == SHT_NOTE && f->build_id_size == 0 &&
        inside(b, s->offset, s->size))
        f->build_id_size =
            build_id_find(b->at + s->offset, s->size, f->build_id);
}

// Returns false if the file is not an ELF program for i386.
static bool look_at(struct elf_file *f, const struct bytes *b)
{
    struct elf_header h;
    struct elf_section s, names;

    if (b->size < sizeof(h))
        return false;
    memcpy(&h, b->at, sizeof(h));
    if (memcmp(h.ident, ELF_MAGIC, 4) != 0 || h.ident[4] != ELF_CLASS32 ||
        h.machine != ELF_MACHINE_386 ||
        (h.type != ELF_TYPE_EXEC && h.type != ELF_TYPE_DYN))
        return false;
    if (h.shentsize != sizeof(s) || h.shstrndx >= h.shnum ||
        !inside(b, h.shoff, (uint64_t)h.shnum * sizeof(s)))
        return true;
    memcpy(&names, b->at + h.shoff + h.shstrndx * sizeof(s), sizeof(names));
    if (!inside(b, names.offset, names.size))
        return true;
    for (uint32_t i = 0; i < h.shnum; i++) {
        memcpy(&s, b->at + h.shoff + i * sizeof(s), sizeof(s));
        const char *name = (const char *)b->at + names.offset + s.name;
        if (s.name < names.size && memchr(name, 0, names.size - s.name))
            look_at_section(f, b, &s, name);
    }
    return true;
}

static void add_file(struct elves *e, const char *path)
{
    struct elf_file f = { 0 };
    struct bytes b;

    b.at = file_map(path, &b.size);
    if (!b.at)
        return;
    bool is_elf = look_at(&f, &b);
    file_unmap(b.at, b.size);
    if (!is_elf || !(f.path = strdup(path)))
        return;
    if (e->count == e->room) {
        size_t room = e->room * 2 + 64;
        void *list = realloc(e->list, room * sizeof(*e->list));
        if (!list) {
            free(f.path);
            return;
        }
        e->list = list;
        e->room = room;
    }
    e->list[e->count++] = f;
}

// --- all files --------------------------------------------------------------

// nftw() passes no argument to its callback.
static struct elves *searching;
static bool in_build; // searching the build folder: skip those of skipped()

// Subfolders of the build folder to skip: objects, sources, host tools,
// packages and other builds.
static bool skipped(const char *name)
{
    static const char *const names[] = { "apt",     "checked", "clang", "host",
                                         "include", "npm",     "obj",   "src" };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(name, names[i]) == 0)
            return true;
    }
    return false;
}

static int visit(const char *path, const struct stat *st, int type,
                 struct FTW *where)
{
    if (type == FTW_D && in_build && where->level > 0 &&
        skipped(path + where->base))
        return FTW_SKIP_SUBTREE;
    if (type == FTW_F && S_ISREG(st->st_mode))
        add_file(searching, path);
    return FTW_CONTINUE;
}

static void search(struct elves *e, const char *folder, bool build)
{
    searching = e;
    in_build = build;
    nftw(folder, visit, SEARCH_FILES, FTW_PHYS | FTW_ACTIONRETVAL);
}

static void find_build_folder(struct elves *e)
{
    ssize_t n = readlink("/proc/self/exe", e->build, sizeof(e->build) - 1);
    char *slash = n > 0 ? memrchr(e->build, '/', n) : NULL;

    strcpy(slash != NULL ? slash : e->build, "");
    strcpy(e->root, e->build);
    slash = strrchr(e->root, '/');
    strcpy(slash != NULL ? slash : e->root, "");
}

void elves_init(struct elves *e, const char *kernel, const char *folders)
{
    *e = (struct elves){ .kernel = kernel, .folders = folders };
    find_build_folder(e);
    for (const char *at = folders; at != NULL && *at != '\0';) {
        char *folder = strndup(at, strcspn(at, ":"));
        if (folder)
            search(e, folder, false);
        free(folder);
        at += strcspn(at, ":");
        at += *at == ':';
    }
    search(e, e->build, true);
}

void elves_free(struct elves *e)
{
    for (size_t i = 0; i < e->count; i++)
        free(e->list[i].path);
    for (size_t i = 0; i < e->message_count; i++)
        free(e->messages[i]);
    free(e->messages);
    free(e->list);
    *e = (struct elves){ 0 };
}

// --- finding one ------------------------------------------------------------

const char *build_id_text(char out[BUILD_ID_TEXT], const uint8_t *id,
                          uint32_t size)
{
    strcpy(out, "none");
    for (uint32_t i = 0; i < size; i++)
        snprintf(out + 2 * i, 3, "%02x", id[i]);
    return out;
}

static const char *keep(struct elves *e, char *message)
{
    char **list =
        realloc(e->messages, (e->message_count + 1) * sizeof(*e->messages));

    if (!list || !message) {
        free(message);
        return "its file was not found";
    }
    e->messages = list;
    return e->messages[e->message_count++] = message;
}

static bool same_id(const struct elf_file *f, const struct image *m)
{
    return f->build_id_size == m->build_id_size &&
           memcmp(f->build_id, m->build_id, m->build_id_size) == 0;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

// Returns the name of an image's file on this machine.
static const char *name_of(const struct image *m)
{
    if (strcmp(m->path, "[kernel]") == 0)
        return "kernel.elf";
    return strcmp(m->path, "[vdso]") == 0 ? "vdso.so" : base_name(m->path);
}

// Returns the first file with the image's build id (`by_id`) or else name, but
// prefers one with line numbers.
static const struct elf_file *best(const struct elves *e, const struct image *m,
                                   bool by_id)
{
    const struct elf_file *found = NULL;

    for (size_t i = 0; i < e->count; i++) {
        const struct elf_file *f = &e->list[i];
        bool fits = by_id ? m->build_id_size > 0 && same_id(f, m)
                          : strcmp(base_name(f->path), name_of(m)) == 0;
        if (fits && (!found || (f->lines && !found->lines)))
            found = f;
    }
    return found;
}

static const char *wrong_id(struct elves *e, const struct image *m,
                            const struct elf_file *f)
{
    char want[BUILD_ID_TEXT], has[BUILD_ID_TEXT], *message;

    build_id_text(want, m->build_id, m->build_id_size);
    build_id_text(has, f->build_id, f->build_id_size);
    if (asprintf(&message, "it was build id %s, and %s has %s", want, f->path,
                 has) < 0)
        message = NULL;
    return keep(e, message);
}

static const char *not_there(struct elves *e, const struct image *m)
{
    char want[BUILD_ID_TEXT], *message;

    build_id_text(want, m->build_id, m->build_id_size);
    if (asprintf(&message, "no file with its build id %s is in %s%s%s", want,
                 e->folders != NULL ? e->folders : "",
                 e->folders != NULL ? ":" : "", e->build) < 0)
        message = NULL;
    return keep(e, message);
}

// Checks the kernel's file from option -k. Returns its path, or NULL.
static const char *chosen_kernel(struct elves *e, const struct image *m,
                                 const char **problem)
{
    struct elf_file f = { .path = (char *)e->kernel };
    struct bytes b;

    *problem = "cannot read the file of -k";
    b.at = file_map(e->kernel, &b.size);
    if (!b.at)
        return NULL;
    bool is_elf = look_at(&f, &b);
    file_unmap(b.at, b.size);
    *problem = "the file of -k is not an ELF program for i386";
    if (!is_elf)
        return NULL;
    if (m->build_id_size > 0 && !same_id(&f, m)) {
        *problem = wrong_id(e, m, &f);
        return NULL;
    }
    *problem = NULL;
    return e->kernel;
}

const char *elves_path(struct elves *e, const struct image *m,
                       const char **problem)
{
    bool kernel = strcmp(m->path, "[kernel]") == 0;

    *problem = "no program is known of its task";
    if (strcmp(m->path, "[unknown]") == 0)
        return NULL;
    if (kernel && e->kernel)
        return chosen_kernel(e, m, problem);
    *problem = NULL;
    const struct elf_file *f = best(e, m, true);
    if (f)
        return f->path;
    f = best(e, m, false);
    if (f && m->build_id_size == 0)
        return f->path;
    *problem = f != NULL ? wrong_id(e, m, f) : not_there(e, m);
    return NULL;
}

void *elves_read(void *e, const struct image *m, size_t *size,
                 const char **problem)
{
    const char *path = elves_path(e, m, problem);

    if (!path)
        return NULL;
    void *bytes = file_read(path, size);
    if (!bytes)
        *problem = "cannot read its file";
    return bytes;
}
