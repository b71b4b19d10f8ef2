#include "lines.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX
#define ROOM_FIRST 1024u
#define ANSWER_MAX 8192

static void *enough(void *memory)
{
    if (memory == NULL)
        fail(1, "not enough memory for the source lines");
    return memory;
}

// --- what is known ----------------------------------------------------------

static uint32_t *bucket_of(const struct lines *l, struct place p)
{
    uint32_t h = (p.image * 0x9e3779b9u ^ p.address) * 0x85ebca6bu;

    return &l->buckets[(h ^ h >> 15) & (l->room - 1)];
}

static void grow(struct lines *l)
{
    l->room = l->room == 0 ? ROOM_FIRST : l->room * 2;
    l->known = enough(realloc(l->known, l->room * sizeof(*l->known)));
    free(l->buckets);
    l->buckets = enough(malloc(l->room * sizeof(*l->buckets)));
    for (uint32_t i = 0; i < l->room; i++)
        l->buckets[i] = NONE;
    for (uint32_t i = 0; i < l->count; i++) {
        uint32_t *bucket = bucket_of(l, l->known[i].place);
        l->known[i].next = *bucket;
        *bucket = i;
    }
}

static struct line remember(struct lines *l, struct place p, struct line line)
{
    if (l->count == l->room)
        grow(l);
    uint32_t *bucket = bucket_of(l, p);
    l->known[l->count] = (struct lines_known){ p, line, *bucket };
    *bucket = l->count++;
    return line;
}

const char *lines_file(struct lines *l, const char *name)
{
    // The latest is the likeliest.
    for (size_t i = l->file_count; i-- > 0;) {
        if (strcmp(l->files[i], name) == 0)
            return l->files[i];
    }
    if (l->file_count == l->file_room) {
        l->file_room = l->file_room * 2 + 64;
        l->files = enough(realloc(l->files, l->file_room * sizeof(*l->files)));
    }
    return l->files[l->file_count++] = enough(strdup(name));
}

const char *lines_short_path(const struct profile *p, const char *path)
{
    size_t root = strlen(p->elves.root);

    return strncmp(path, p->elves.root, root) == 0 && path[root] == '/'
               ? path + root + 1
               : path;
}

// --- asking -----------------------------------------------------------------

static void start(struct lines *l, uint32_t image)
{
    struct lines_image *i = &l->images[image];
    const char *problem;
    const char *path = elves_path(
        &l->profile->elves, &l->profile->samples.images.list[image], &problem);
    const char *const argv[] = { "addr2line", "-e", path, NULL };

    i->asked = true;
    i->gone = path == NULL;
    if (!i->gone && coprocess_start(&i->process, argv, NULL) < 0)
        fail(1, "addr2line: %s", strerror(errno));
}

static _Noreturn void no_answer(struct lines_image *i)
{
    if (coprocess_end(&i->process) == 127)
        fail(1, "addr2line is not installed: it comes with binutils");
    fail(1, "addr2line ended without an answer");
}

// Strobe's own files are named as from its root: "./kernel/init/main.c".
static const char *found_at(struct lines *l, const char *path)
{
    char full[ANSWER_MAX + PATH_MAX];

    if (strncmp(path, "./", 2) != 0)
        return lines_file(l, path);
    snprintf(full, sizeof(full), "%s/%s", l->profile->elves.root, path + 2);
    return lines_file(l, full);
}

// "FILE:LINE", perhaps with " (discriminator N)" behind; "??:?" or "FILE:?".
static struct line parse(struct lines *l, char *answer)
{
    answer[strcspn(answer, "\n")] = '\0';
    char *more = strstr(answer, " (discriminator");
    if (more != NULL)
        *more = '\0';
    char *colon = strrchr(answer, ':');
    if (colon == NULL || answer[0] == '?')
        return (struct line){ 0 };
    *colon = '\0';
    return (struct line){ found_at(l, answer),
                          (uint32_t)strtoul(colon + 1, NULL, 10) };
}

static struct line ask(struct lines *l, struct place p)
{
    struct lines_image *i = &l->images[p.image];
    char answer[ANSWER_MAX];

    if (!i->asked)
        start(l, p.image);
    if (i->gone)
        return (struct line){ 0 };
    fprintf(i->process.to, "%x\n", p.address);
    if (fflush(i->process.to) != 0 ||
        fgets(answer, sizeof(answer), i->process.from) == NULL)
        no_answer(i);
    return parse(l, answer);
}

struct line lines_find(struct lines *l, struct place p)
{
    if (p.image >= l->image_count)
        return (struct line){ 0 };
    for (uint32_t i = *bucket_of(l, p); i != NONE; i = l->known[i].next) {
        const struct lines_known *k = &l->known[i];
        if (k->place.image == p.image && k->place.address == p.address)
            return k->line;
    }
    return remember(l, p, ask(l, p));
}

void lines_init(struct lines *l, struct profile *p)
{
    uint32_t images = p->samples.images.count;

    signal(SIGPIPE, SIG_IGN); // an addr2line that ends is told of
    *l = (struct lines){ .profile = p, .image_count = images };
    l->images = enough(calloc(images, sizeof(*l->images)));
    grow(l);
}

void lines_free(struct lines *l)
{
    for (uint32_t i = 0; i < l->image_count; i++)
        coprocess_end(&l->images[i].process);
    for (size_t i = 0; i < l->file_count; i++)
        free(l->files[i]);
    free(l->files);
    free(l->images);
    free(l->known);
    free(l->buckets);
    *l = (struct lines){ 0 };
}
