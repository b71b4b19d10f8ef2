// tools/strobe-src/inlines.c: random chains with random inlined functions,
// against the known frames of each place; and the tables made of them. The
// frames replace the output of addr2line.
// link: tools/strobe-src/inlines.c tools/strobe-src/places.c
// link: user/libprofile/mapping.c user/libprofile/images_read.c
// link: user/libprofile/samples.c user/libprofile/stream.c
// link: user/libprofile/user_chain.c user/libprofile/chains.c
// link: user/libprofile/images.c user/libprofile/programs.c
// link: user/libprofile/views.c user/libstrobe/messages.c
// link: user/libstrobe/table.c
// link: user/libprofile/task_times.c
#include "test.h"

#undef fail // strobe has a function of that name
#include "tools/strobe-src/lines.h"

#define IMAGES 3u     // with code
#define ADDRESSES 40u // in each image
#define DEPTH_MAX 4u  // of inlined functions
#define NAMES 6u
#define SAMPLES 400u
#define LONGEST 9u

static const char *const names[NAMES] = { "list_add", "min", "max",
                                          "lock",     "a",   NULL };

// The frames of each place: the innermost first, the containing function last.
static struct line_frame frames_of[IMAGES_FIXED + IMAGES][ADDRESSES]
                                  [DEPTH_MAX + 1];
static uint32_t depths[IMAGES_FIXED + IMAGES][ADDRESSES];
static uint32_t asked;

void lines_ask(struct lines *l UNUSED, const struct place *list UNUSED,
               uint32_t count)
{
    asked += count;
}

const struct line_frame *lines_frames(struct lines *l UNUSED, struct place p,
                                      uint32_t *count)
{
    *count = 1 + depths[p.image][p.address];
    return frames_of[p.image][p.address];
}

static void tell(void)
{
    for (uint32_t i = 0; i < ARRAY_SIZE(frames_of); i++) {
        for (uint32_t a = 0; a < ADDRESSES; a++) {
            depths[i][a] = random_below(2) ? random_below(DEPTH_MAX + 1) : 0;
            for (uint32_t d = 0; d < depths[i][a]; d++)
                frames_of[i][a][d].function = names[random_below(NAMES)];
            frames_of[i][a][depths[i][a]].function = "around";
        }
    }
}

// --- a profile --------------------------------------------------------------

static struct place chains[SAMPLES][LONGEST]; // the outermost first
static uint32_t lengths[SAMPLES];

static void *no_file(const char *path UNUSED, size_t *size UNUSED)
{
    return NULL;
}

static void make(struct profile *p)
{
    *p = (struct profile){ .list = calloc(SAMPLES, sizeof(*p->list)) };
    assert_int_equal(samples_init(&p->samples, no_file), 0);
    for (uint32_t i = 0; i < IMAGES; i++) {
        char path[] = "/bin/a";
        path[5] += (char)i;
        images_add(&p->samples.images, path, &i, sizeof(i));
    }
    for (uint32_t n = 0; n < SAMPLES; n++) {
        struct sample_count c = { .chain = CHAIN_ROOT,
                                  .task = n, // each is a count of its own
                                  .mode =
                                      random_below(4) ? MODE_USER : MODE_IDLE,
                                  .samples = 1 + random_below(3),
                                  .period = 1 + random_below(100) };
        lengths[n] = random_below(LONGEST + 1);
        for (uint32_t i = 0; i < lengths[n]; i++) {
            chains[n][i] =
                (struct place){ random_below(2)
                                    ? IMAGES_FIXED + random_below(IMAGES)
                                    : IMAGE_KERNEL,
                                random_below(ADDRESSES) };
            c.chain = chains_add(&p->samples.chains, c.chain, chains[n][i]);
        }
        samples_count(&p->samples, &c);
        p->list[p->count++] = (struct timed_sample){ .task = n,
                                                     .mode = c.mode,
                                                     .chain = c.chain };
    }
}

static void clear(struct profile *p)
{
    inlines_free(&p->inlines);
    samples_free(&p->samples);
    free(p->list);
}

// --- expanded chains --------------------------------------------------------

static const char *name_of(const struct inlined *inlined)
{
    return inlined != NULL ? inlined->name : "around";
}

// Checks the nodes of one place, the innermost first; returns the node of its
// caller. The innermost place of an idle sample has only its containing
// function.
static uint32_t check_place(const struct profile *p, uint32_t node,
                            struct place place, bool idles)
{
    const struct chains *c = &p->samples.chains;
    uint32_t depth = depths[place.image][place.address];

    for (uint32_t d = idles ? depth : 0; d <= depth;
         d++, node = c->nodes[node].parent) {
        struct place at = c->nodes[node].place;
        const struct inlined *inlined = inlines_find(&p->inlines, at);
        const char *name = frames_of[place.image][place.address][d].function;
        assert_string_equal(name_of(inlined), name != NULL ? name : "?");
        assert_int_equal(inlines_image(&p->inlines, at.image), place.image);
        assert_true((inlined == NULL) == (d == depth));
        if (inlined != NULL)
            at = inlined->place;
        assert_int_equal(at.image, place.image);
        assert_int_equal(at.address, place.address);
        assert_true(inlined == NULL || inlined->depth == depth - d);
    }
    return node;
}

static void expands(void **state UNUSED)
{
    struct profile p;

    for (uint32_t round = 0; round < 20; round++) {
        tell();
        make(&p);
        asked = 0;
        uint32_t before = p.samples.chains.count;
        inlines_expand(&p, NULL);
        assert_true(asked < before && asked <= (1 + IMAGES) * ADDRESSES);
        for (uint32_t n = 0; n < SAMPLES; n++) {
            uint32_t node = p.list[n].chain;
            assert_int_equal(p.samples.counts[n].chain, node);
            for (uint32_t i = lengths[n]; i-- > 0;)
                node = check_place(&p, node, chains[n][i],
                                   p.list[n].mode == MODE_IDLE &&
                                       i == lengths[n] - 1);
            assert_int_equal(node, CHAIN_ROOT);
        }
        clear(&p);
    }
}

// The samples of a function: those with it innermost in their innermost place.
static uint64_t self_of(const struct profile *p, uint32_t image,
                        const char *name)
{
    uint64_t sum = 0;

    for (uint32_t n = 0; n < SAMPLES; n++) {
        if (lengths[n] == 0 || p->list[n].mode == MODE_IDLE)
            continue;
        struct place at = chains[n][lengths[n] - 1];
        const char *innermost = frames_of[at.image][at.address][0].function;
        bool inlined = depths[at.image][at.address] > 0;
        innermost = innermost != NULL ? innermost : "?";
        if (inlined && at.image == image && strcmp(innermost, name) == 0)
            sum += p->samples.counts[n].samples;
    }
    return sum;
}

static void tables(void **state UNUSED)
{
    const struct view_filter all = { 0 };
    struct profile p;
    struct view v;
    uint32_t rows = 0;

    tell();
    make(&p);
    inlines_expand(&p, NULL);
    assert_int_equal(view_make(&v, &p.samples, BY_SYMBOL, &all), 0);
    for (uint32_t i = 0; i < v.count; i++) {
        const struct view_row *row = &v.rows[i];
        const struct inlined *inlined = inlines_find(
            &p.inlines, (struct place){ row->image, row->address });
        char text[32];
        if (inlined == NULL)
            continue;
        rows++;
        snprintf(text, sizeof(text), "%s (inlined)", inlined->name);
        assert_int_equal(row->name_size, strlen(text));
        assert_memory_equal(row->name, text, row->name_size);
        assert_int_equal(row->self,
                         self_of(&p, inlined->place.image, inlined->name));
        assert_string_equal(p.samples.images.list[row->image].path,
                            p.samples.images.list[inlined->place.image].path);
    }
    assert_true(rows > 0 && rows <= NAMES * (1 + IMAGES));
    view_free(&v);
    clear(&p);
}

// Without debug information nothing changes.
static void no_frames_without_lines(void **state UNUSED)
{
    struct profile p;

    memset(depths, 0, sizeof(depths));
    make(&p);
    uint32_t images = p.samples.images.count, nodes = p.samples.chains.count;
    uint32_t chain = p.list[SAMPLES - 1].chain;
    inlines_expand(&p, NULL);
    assert_int_equal(p.samples.images.count, images);
    assert_int_equal(p.samples.chains.count, nodes);
    assert_int_equal(p.list[SAMPLES - 1].chain, chain);
    assert_null(inlines_find(&p.inlines, (struct place){ IMAGES_FIXED, 1 }));
    assert_null(inlines_find(&p.inlines, (struct place){ IMAGE_NONE, 0 }));
    clear(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expands),
        cmocka_unit_test(tables),
        cmocka_unit_test(no_frames_without_lines),
    };
    random_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
