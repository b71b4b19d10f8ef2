// Program files: finding them, and reading their symbols.
#define _GNU_SOURCE // asprintf
#include "strobe.h"

#include "sysinfo.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#define IMAGE_MAX (256 * 1024 * 1024) // maximum size of a file that is read

static bool is_program(const char *path)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return false;
    errno = EACCES;
    return S_ISREG(st.st_mode) && (st.st_mode & 0111) != 0;
}

char *program_find(const char *name)
{
    if (strchr(name, '/'))
        return is_program(name) ? strdup(name) : NULL;

    const char *folders = getenv("PATH");
    if (!folders)
        folders = "/bin:/usr/bin";
    while (folders) {
        size_t size = strcspn(folders, ":");
        char *path = NULL;
        if (asprintf(&path, "%.*s%s%s", (int)size, folders, size > 0 ? "/" : "",
                     name) < 0)
            return NULL;
        if (is_program(path))
            return path;
        free(path);
        folders = folders[size] == ':' ? folders + size + 1 : NULL;
    }
    errno = ENOENT;
    return NULL;
}

char *program_of_task(uint32_t task)
{
    char link[32], path[PATH_MAX];

    snprintf(link, sizeof(link), "/proc/%u/exe", task);
    ssize_t size = readlink(link, path, sizeof(path) - 1);
    if (size < 0)
        return NULL;
    path[size] = '\0';
    return strdup(path);
}

int program_open_running(uint32_t task, const char *path)
{
    char link[32], *runs = program_of_task(task);
    bool same = runs != NULL && strcmp(runs, path) == 0;

    free(runs);
    snprintf(link, sizeof(link), "/proc/%u/exe", task);
    return same ? open(link, O_RDONLY | O_CLOEXEC) : -1;
}

// Reads a whole file. Returns NULL and sets errno on failure.
static void *read_file(const char *path, size_t *size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    char *image = NULL;

    if (fd < 0)
        return NULL;
    if (fstat(fd, &st) == 0) {
        errno = S_ISDIR(st.st_mode) ? EISDIR : EFBIG;
        if (S_ISREG(st.st_mode) && st.st_size <= IMAGE_MAX)
            image = malloc(st.st_size + 1);
    }
    *size = 0;
    while (image && *size < (size_t)st.st_size) {
        ssize_t n = read(fd, image + *size, st.st_size - *size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break; // the file was truncated: use what was read
        *size += n;
    }
    close(fd);
    return image;
}

// Copies the vDSO's image. The kernel maps the same image into every program,
// including this one. It ends with its section headers (arch/i386/vdso).
static void *read_vdso(size_t *size)
{
    const Elf32_Ehdr *header = (void *)getauxval(AT_SYSINFO_EHDR);

    errno = ENOENT;
    if (!header)
        return NULL;
    *size = header->e_shoff + header->e_shnum * sizeof(Elf32_Shdr);
    void *image = malloc(*size);
    return !image ? NULL : memcpy(image, header, *size);
}

void *program_read(const char *path, size_t *size)
{
    if (strcmp(path, "[kernel]") == 0)
        return sysinfo_read_large("kernel.symbols", size);
    if (strcmp(path, "[vdso]") == 0)
        return read_vdso(size);
    return read_file(path, size);
}

uint32_t kernel_build_id(uint8_t id[BUILD_ID_MAX])
{
    size_t size;
    char *text = sysinfo_read("kernel.build_id", &size);
    uint32_t n = 0;
    unsigned byte;

    while (text && n < BUILD_ID_MAX && sscanf(text + 2 * n, "%2x", &byte) == 1)
        id[n++] = byte;
    free(text);
    return n;
}

// Loads the symbols of one file. Returns NULL, or the reason why it has none.
static const char *load(struct program_symbols *p, const char *path)
{
    static const char *const why[] = {
        [SYMBOLS_STRIPPED] = "no symbols (stripped?)",
        [SYMBOLS_CORRUPT] = "its symbol table is corrupt",
        [SYMBOLS_FOREIGN] = "not an ELF program for i386",
    };
    size_t size;

    memset(p, 0, sizeof(*p));
    p->image = program_read(path, &size);
    if (!p->image)
        return "cannot read its file";
    uint32_t room = symbols_room(p->image, size);
    p->table = calloc(room + 1, sizeof(struct symbol));
    if (!p->table) {
        program_symbols_free(p);
        return "not enough memory for its symbols";
    }
    enum symbols_status status =
        symbols_read(&p->symbols, p->image, size, p->table, room);
    if (status == SYMBOLS_OK)
        return NULL;
    program_symbols_free(p);
    return why[status];
}

const char *program_symbols_load(struct program_symbols *p, const char *path)
{
    char *beside = NULL;
    const char *problem = load(p, path);

    if (problem && asprintf(&beside, "%s.sym", path) >= 0) {
        if (!load(p, beside))
            problem = NULL;
        free(beside);
    }
    return problem;
}

void program_symbols_free(struct program_symbols *p)
{
    free(p->image);
    free(p->table);
    memset(p, 0, sizeof(*p));
}
