#include "lines.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX
#define ROOM_FIRST 1024u
#define ANSWER_MAX 8192
// Questions written before their answers are read. They fit in a pipe: with
// more, this program and addr2line could both block in write.
#define QUESTIONS 256u

// --- cache ------------------------------------------------------------------

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

static void add_frame(struct lines *l, struct line_frame frame)
{
    if (l->frame_count == l->frame_room) {
        l->frame_room = l->frame_room * 2 + ROOM_FIRST;
        l->frames =
            enough(realloc(l->frames, l->frame_room * sizeof(*l->frames)));
    }
    l->frames[l->frame_count++] = frame;
}

// Caches the frames from `first` on as those of the place. Adds an empty one if
// there is none.
static void remember(struct lines *l, struct place p, uint32_t first)
{
    if (l->frame_count == first)
        add_frame(l, (struct line_frame){ 0 });
    if (l->count == l->room)
        grow(l);
    uint32_t *bucket = bucket_of(l, p);
    l->known[l->count] = (struct lines_known){ .place = p,
                                               .first = first,
                                               .frames = l->frame_count - first,
                                               .next = *bucket };
    *bucket = l->count++;
}

static const struct lines_known *find(const struct lines *l, struct place p)
{
    for (uint32_t i = *bucket_of(l, p); i != NONE; i = l->known[i].next) {
        const struct lines_known *k = &l->known[i];
        if (k->place.image == p.image && k->place.address == p.address)
            return k;
    }
    return NULL;
}

const char *lines_file(struct lines *l, const char *name)
{
    return names_keep(&l->names, name);
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
    const char *const argv[] = {
        "addr2line", "-a", "-f", "-i", "-e", path, NULL
    };

    i->asked = true;
    i->gone = !path || l->problem != NULL;
    if (!i->gone && coprocess_start(&i->process, argv, NULL) < 0)
        fail(1, "addr2line: %s", strerror(errno));
}

static void no_answer(struct lines *l, struct lines_image *i)
{
    l->problem = coprocess_end(&i->process) == 127
                     ? "addr2line is not installed: it comes with binutils"
                     : "addr2line ended without an answer";
    i->gone = true;
    if (l->needed)
        fail(1, "%s", l->problem);
    complain("%s; inlined functions count as their callers", l->problem);
}

// Paths of Strobe's own files are relative to its root: "./kernel/init/main.c".
static const char *found_at(struct lines *l, const char *path)
{
    char full[ANSWER_MAX + PATH_MAX];

    if (strncmp(path, "./", 2) != 0)
        return lines_file(l, path);
    snprintf(full, sizeof(full), "%s/%s", l->profile->elves.root, path + 2);
    return lines_file(l, full);
}

// Parses "FILE:LINE", "FILE:LINE (discriminator N)", "??:?" or "FILE:?".
static struct line parse(struct lines *l, char *answer)
{
    char *more = strstr(answer, " (discriminator");
    if (more)
        *more = '\0';
    char *colon = strrchr(answer, ':');
    if (!colon || answer[0] == '?')
        return (struct line){ 0 };
    *colon = '\0';
    return (struct line){ found_at(l, answer),
                          (uint32_t)strtoul(colon + 1, NULL, 10) };
}

// An answer begins with a line that holds the address. Then come two lines for
// each function: its name; file and line.
static bool begins(const char *line)
{
    return strncmp(line, "0x", 2) == 0;
}

static bool next_line(const struct lines_image *i, char line[ANSWER_MAX])
{
    if (!fgets(line, ANSWER_MAX, i->process.from))
        return false;
    line[strcspn(line, "\n")] = '\0';
    return true;
}

// Reads an answer after its first line, up to the first line of the next one.
static bool read_answer(struct lines *l, const struct lines_image *i)
{
    char line[ANSWER_MAX];

    while (next_line(i, line)) {
        if (begins(line))
            return true;
        const char *function =
            line[0] != '?' ? names_keep(&l->names, line) : NULL;
        if (!next_line(i, line))
            break;
        add_frame(l, (struct line_frame){ function, parse(l, line) });
    }
    return false;
}

// The end of an answer shows only when the next one begins. So one more
// question is asked, and the rest of its answer is skipped next time.
static bool read_answers(struct lines *l, const struct lines_image *i,
                         const struct place *list, uint32_t count)
{
    char line[ANSWER_MAX];
    bool ok;

    do
        ok = next_line(i, line);
    while (ok && !begins(line));
    for (uint32_t n = 0; n < count && ok; n++) {
        uint32_t first = l->frame_count;
        ok = read_answer(l, i);
        if (!ok)
            l->frame_count = first;
        else
            remember(l, list[n], first);
    }
    return ok;
}

// All places are of one image.
static void ask(struct lines *l, const struct place *list, uint32_t count)
{
    struct lines_image *i = &l->images[list->image];

    if (!i->asked)
        start(l, list->image);
    if (i->gone)
        return;
    // Ignored only here: no_answer() reports that addr2line has ended.
    void (*before)(int) = signal(SIGPIPE, SIG_IGN);
    for (uint32_t n = 0; n < count; n++)
        fprintf(i->process.to, "%x\n", list[n].address);
    fputs("0\n", i->process.to);
    if (fflush(i->process.to) != 0 || !read_answers(l, i, list, count))
        no_answer(l, i);
    signal(SIGPIPE, before);
}

void lines_ask(struct lines *l, const struct place *list, uint32_t count)
{
    struct place asked[QUESTIONS];
    uint32_t n = 0;

    for (uint32_t i = 0; i < count; i++) {
        if (list[i].image >= l->image_count || find(l, list[i]))
            continue;
        if (n == QUESTIONS || (n > 0 && asked[0].image != list[i].image)) {
            ask(l, asked, n);
            n = 0;
        }
        asked[n++] = list[i];
    }
    if (n > 0)
        ask(l, asked, n);
}

const struct line_frame *lines_frames(struct lines *l, struct place p,
                                      uint32_t *count)
{
    const struct lines_known *k = find(l, p);

    if (!k) {
        lines_ask(l, &p, 1);
        k = find(l, p);
    }
    if (!k) {
        remember(l, p, l->frame_count);
        k = find(l, p);
    }
    *count = k->frames;
    return &l->frames[k->first];
}

struct line lines_find(struct lines *l, struct place p)
{
    const struct inlines *inlines = &l->profile->inlines;
    const struct inlined *inlined = inlines_find(inlines, p);
    uint32_t count;

    if (inlined) {
        const struct line_frame *f = lines_frames(l, inlined->place, &count);
        return f[count - 1 - inlined->depth].line;
    }
    const struct line_frame *f = lines_frames(l, p, &count);
    return f[inlines->expanded ? count - 1 : 0].line;
}

// --- init and free ----------------------------------------------------------

void lines_init(struct lines *l, struct profile *p)
{
    uint32_t images = p->samples.images.count;

    *l = (struct lines){ .profile = p, .image_count = images };
    l->images = enough(calloc(images, sizeof(*l->images)));
    grow(l);
}

void lines_free(struct lines *l)
{
    for (uint32_t i = 0; i < l->image_count; i++)
        coprocess_end(&l->images[i].process);
    names_free(&l->names);
    free(l->images);
    free(l->frames);
    free(l->known);
    free(l->buckets);
    *l = (struct lines){ 0 };
}

void lines_need(struct lines *l)
{
    if (l->problem)
        fail(1, "%s", l->problem);
    l->needed = true;
}
