// The record stream and its tables of samples: with every byte damaged,
// truncated at every length, and with each allocation failing. Nothing is read
// beyond the end, no memory leaks, and every sample is accounted for.
//
// The files that allocate are included here, so that allocations can fail.
//
// link: user/libprofile/mapping.c user/libprofile/samples_cut.c
// link: user/libprofile/stream.c user/libprofile/user_chain.c
// link: user/libprofile/task_times.c
#include "test.h"

static u32 asked, refused; // allocations; which one fails, from 1

static bool refuse(void)
{
    return ++asked == refused;
}

static void *scarce_malloc(size_t size)
{
    return refuse() ? NULL : malloc(size);
}

static void *scarce_calloc(size_t n, size_t size)
{
    return refuse() ? NULL : calloc(n, size);
}

static void *scarce_realloc(void *old, size_t size)
{
    return refuse() ? NULL : realloc(old, size);
}

static char *scarce_strdup(const char *text)
{
    return refuse() ? NULL : strdup(text);
}

#define malloc scarce_malloc
#define calloc scarce_calloc
#define realloc scarce_realloc
#undef strdup
#define strdup scarce_strdup
#define grow chains_grow
#define enter chains_enter
#define bucket_of chains_bucket_of
#include "user/libprofile/chains.c"
#undef grow
#undef enter
#undef bucket_of
#include "user/libprofile/images.c"
#include "user/libprofile/images_read.c"
#include "user/libprofile/programs.c"
#undef NONE
#include "user/libprofile/samples.c"
#undef malloc
#undef calloc
#undef realloc
#undef strdup

#define PROGRAM "build/user/tester"
#define TASKS 80   // more than the initial capacity
#define SAMPLES 40 // of each task
#define SPARE 65536u

static _Alignas(8) u8 stream[TASKS * SAMPLES * 64 + SPARE];
static u32 stream_size;

static void *add(u32 type, u32 size, u64 time)
{
    struct sprofile_record *head = (void *)(stream + stream_size);
    size = ALIGN_UP(size, 8u);
    assert_true(stream_size + size <= sizeof(stream));
    memset(head, 0, size);
    *head = (struct sprofile_record){ type, size, 1, 0, time };
    stream_size += size;
    return head;
}

static struct sprofile_task *add_task(u32 task, const char *file)
{
    struct sprofile_task *t = add(SPROFILE_R_TASK, sizeof(*t) + 32, task);
    t->task = task;
    t->kind = SPROFILE_T_EXECED;
    strcpy(t->name, "test");
    strcpy(t->path, file);
    return t;
}

static void add_load_bias(struct sprofile_task *t, u32 bias)
{
    t->head.flags = SPROFILE_F_LOAD_BIAS;
    memcpy((u8 *)t + t->head.size - sizeof(bias), &bias, sizeof(bias));
}

// Two kernel entries, three words of the stack, two user entries.
static void add_sample(u32 task, u32 pc)
{
    struct sprofile_sample *s =
        add(SPROFILE_R_SAMPLE, sizeof(*s) + 7 * 4, 1000 + task);
    s->task = s->thread = task;
    s->period = 1000;
    s->kernel_depth = 2;
    s->stack_words = 3;
    s->user_depth = 2;
    s->pc[0] = 0xc0100000 + pc;
    s->pc[5] = 0x08048000 + pc;
    s->pc[6] = 0x08049000;
}

static void add_lost(u64 count)
{
    struct sprofile_lost *l = add(SPROFILE_R_LOST, sizeof(*l), 2000);
    l->count = count;
}

static void make_stream(u32 tasks, u32 samples)
{
    stream_size = 0;
    for (u32 t = 1; t <= tasks; t++) {
        char other[32];
        sprintf(other, "/none/%u", t);
        struct sprofile_task *record = add_task(t, t % 2 ? PROGRAM : other);
        if (t % 2 == 0)
            add_load_bias(record, 0x56555000 + t * 0x1000);
        for (u32 i = 0; i < samples; i++)
            add_sample(t, 16 * i + t);
    }
    add_lost(7);
}

static void *read_program(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    if (f == NULL)
        return NULL;
    fseek(f, 0, SEEK_END);
    *size = ftell(f);
    rewind(f);
    void *bytes = malloc(*size);
    assert_int_equal(fread(bytes, 1, *size, f), *size);
    fclose(f);
    return bytes;
}

static void *read_nothing(const char *path, size_t *size)
{
    (void)path;
    (void)size;
    return NULL;
}

// All counted samples, including those that could not be kept apart.
static u64 counted(const struct samples *s)
{
    u64 sum = s->uncounted;
    for (u32 i = 0; i < s->count; i++)
        sum += s->counts[i].samples;
    return sum;
}

// Feeds a copy of the exact size: ASan detects a read beyond its end.
static void feed(const u8 *bytes, size_t size)
{
    static struct samples s;
    u8 *copy = malloc(size + 1);
    assert_int_equal(samples_init(&s, read_nothing), 0);
    u8 *exact = realloc(copy, size ? size : 1);
    memcpy(exact, bytes, size);
    assert_true(samples_add_stream(&s, exact, size) <= size);
    assert_true(counted(&s) == s.total);
    free(exact);
    samples_free(&s);
}

static void test_every_byte_changed(void **state)
{
    (void)state;
    make_stream(2, 2);
    for (u32 i = 0; i < stream_size; i++) {
        for (u32 bit = 0; bit < 8; bit++) {
            stream[i] ^= 1u << bit;
            feed(stream, stream_size);
            stream[i] ^= 1u << bit;
        }
        u8 was = stream[i];
        stream[i] = (u8)random_u64();
        feed(stream, stream_size);
        stream[i] = was;
    }
}

static void test_every_length(void **state)
{
    (void)state;
    make_stream(2, 2);
    for (u32 size = 0; size <= stream_size; size++)
        feed(stream, size);
}

// In pieces of any size: the incomplete end of one begins the next.
static void test_in_pieces(void **state)
{
    static struct samples s;
    static u8 left[SPARE];
    (void)state;
    make_stream(3, 3);
    assert_int_equal(samples_init(&s, read_nothing), 0);
    u32 kept = 0, at = 0;
    while (at < stream_size) {
        u32 n = MIN(1 + random_below(200), stream_size - at);
        memcpy(left + kept, stream + at, n);
        at += n;
        kept += n;
        size_t taken = samples_add_stream(&s, left, kept);
        memmove(left, left + taken, kept - taken);
        kept -= taken;
    }
    assert_int_equal(kept, 0);
    assert_true(s.total == 9 && s.lost == 7 && !s.reader.malformed);
    samples_free(&s);
}

// Returns false if samples_init fails.
static bool run_without(u32 nth)
{
    static struct samples s;
    asked = 0;
    refused = nth;
    if (samples_init(&s, read_program) < 0)
        return false;
    assert_int_equal(samples_add_stream(&s, stream, stream_size), stream_size);
    assert_true(s.total == (u64)TASKS * SAMPLES && s.lost == 7);
    assert_true(counted(&s) == s.total);
    assert_true(s.reader.malformed == 0);
    for (u32 i = 0; i < s.images.count; i++)
        images_symbol(&s.images, i, 0x08049000);
    samples_free(&s);
    return true;
}

static void test_no_memory_anywhere(void **state)
{
    (void)state;
    make_stream(TASKS, SAMPLES);
    u32 begun = 0;
    assert_true(run_without(0));
    u32 all = asked;
    assert_true(all > 20);
    for (u32 nth = 1; nth <= all; nth++)
        begun += run_without(nth);
    assert_true(begun > all / 2 && begun < all);
}

// A chain of up to 20 functions, which shares some of the outer ones with the
// previous chain.
static void add_deep_sample(u32 task, u32 *pc)
{
    u32 depth = random_below(21);
    for (u32 i = 0; i < random_below(depth + 1); i++)
        pc[20 - i] = 0x08049000 + random_below(3);
    struct sprofile_sample *s =
        add(SPROFILE_R_SAMPLE, sizeof(*s) + (1 + depth) * 4, 1000);
    s->task = s->thread = task;
    s->kernel_depth = depth == 0;
    s->user_depth = depth;
    s->pc[0] = 0xc0100000;
    for (u32 i = 0; i < depth; i++)
        s->pc[i] = pc[i];
}

// The tree is the same with and without the cached last chain.
static void test_last_chain(void **state)
{
    static struct samples with, without;
    u32 pc[21] = { 0 };
    (void)state;
    assert_int_equal(samples_init(&with, read_nothing), 0);
    assert_int_equal(samples_init(&without, read_nothing), 0);
    stream_size = 0;
    add_task(1, "/none/a");
    add_task(2, "/none/b");
    add_load_bias(add_task(3, "/none/a"), 0x1000);
    for (u32 n = 0; n < 5000; n++) {
        add_deep_sample(1 + random_below(3), pc);
        without.last.depth = 0;
        samples_add_stream(&with, stream, stream_size);
        samples_add_stream(&without, stream, stream_size);
        stream_size = 0;
        if (random_below(1000) == 0) {
            samples_clear(&with);
            samples_clear(&without);
        }
    }
    assert_int_equal(with.chains.count, without.chains.count);
    assert_memory_equal(with.chains.nodes, without.chains.nodes,
                        with.chains.count * sizeof(with.chains.nodes[0]));
    assert_int_equal(with.count, without.count);
    for (u32 i = 0; i < with.count; i++)
        assert_true(same(&with.counts[i], &without.counts[i]) &&
                    with.counts[i].samples == without.counts[i].samples);
    samples_free(&with);
    samples_free(&without);
}

// The same program at three load biases; one task is a child of another.
static void test_load_bias(void **state)
{
    static struct samples s;
    static const u32 bias[] = { 0, 0x56600000, 0x57700000, 0x57700000 };
    (void)state;
    stream_size = 0;
    for (u32 task = 0; task < ARRAY_SIZE(bias); task++) {
        struct sprofile_task *t = add_task(task, "/none/pie");
        t->kind = task == 3 ? SPROFILE_T_FORKED : SPROFILE_T_EXECED;
        add_load_bias(t, bias[task]);
    }
    for (u32 n = 0; n < 40; n++) {
        u32 task = n % ARRAY_SIZE(bias);
        struct sprofile_sample *sample =
            add(SPROFILE_R_SAMPLE, sizeof(*sample) + 2 * 4, 1000);
        sample->task = task;
        sample->user_depth = 2;
        sample->pc[0] = bias[task] + 0x1010;
        sample->pc[1] = bias[task] + 0x1100;
    }
    assert_int_equal(samples_init(&s, read_nothing), 0);
    samples_add_stream(&s, stream, stream_size);
    assert_int_equal(s.reader.malformed, 0);
    assert_int_equal(s.images.count, IMAGES_FIXED + 1);
    assert_int_equal(s.chains.count, 3);
    for (u32 i = 0; i < s.count; i++) {
        const struct chain_node *n = &s.chains.nodes[s.counts[i].chain];
        assert_int_equal(n->place.image, IMAGES_FIXED);
        assert_int_equal(n->place.address, 0x1010);
        assert_int_equal(s.chains.nodes[n->parent].place.address, 0x10ff);
    }
    samples_free(&s);
}

// A chain that ends in a program's argc is complete.
static void test_argc(void **state)
{
    static struct samples s;
    (void)state;
    assert_int_equal(samples_init(&s, read_nothing), 0);
    for (u32 argc = 1; argc < CHAIN_MARKS; argc++) {
        stream_size = 0;
        add_task(1, "/none/a");
        struct sprofile_sample *sample =
            add(SPROFILE_R_SAMPLE, sizeof(*sample) + 3 * 4, 1000);
        sample->task = 1;
        sample->user_depth = 3;
        sample->pc[0] = 0x08049010;
        sample->pc[1] = 0x08049020;
        sample->pc[2] = argc;
        samples_add_stream(&s, stream, stream_size);
    }
    assert_int_equal(s.chains.count, 3);
    assert_int_equal(samples_cut(&s).any, 0);
    samples_free(&s);
}

static void add_recorded(u32 outermost)
{
    struct sprofile_sample *sample =
        add(SPROFILE_R_SAMPLE, sizeof(*sample) + 2 * 4, 1000);
    sample->head.flags = SPROFILE_F_USER_CALLS;
    sample->task = 1;
    sample->user_depth = 2;
    sample->pc[0] = 0x08049010;
    sample->pc[1] = outermost;
}

// A chain of recorded calls is whole if its outermost call is in the function
// at which the program begins.
static void test_recorded_calls(void **state)
{
    static struct samples s;
    size_t size;
    u32 entry;
    u8 *program = read_program(PROGRAM, &size);
    (void)state;
    memcpy(&entry, program + 24, sizeof(entry)); // e_entry
    free(program);
    for (u32 whole = 0; whole < 2; whole++) {
        stream_size = 0;
        add_task(1, PROGRAM);
        add_recorded(whole ? entry + 1 : 0x08049031); // a call that begins at
                                                      // the entry; in main
        assert_int_equal(samples_init(&s, read_program), 0);
        samples_add_stream(&s, stream, stream_size);
        assert_int_equal(samples_cut(&s).any, !whole);
        assert_int_equal(samples_cut(&s).broken, !whole);
        samples_free(&s);
    }
}

// The path must end before the load bias.
static void test_load_bias_without_room(void **state)
{
    static struct samples s;
    (void)state;
    for (u32 i = 0; i < 3; i++) {
        stream_size = 0;
        struct sprofile_task *t = add_task(1, "/none/pie");
        memset(t->path, 'x', t->head.size - sizeof(*t));
        t->path[t->head.size - sizeof(*t) - 4 - i] = 0;
        add_load_bias(t, 0x1000);
        assert_int_equal(samples_init(&s, read_nothing), 0);
        samples_add_stream(&s, stream, stream_size);
        assert_int_equal(s.reader.malformed, i == 0);
        samples_free(&s);
    }
}

int main(void)
{
    random_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_byte_changed),
        cmocka_unit_test(test_every_length),
        cmocka_unit_test(test_in_pieces),
        cmocka_unit_test(test_no_memory_anywhere),
        cmocka_unit_test(test_last_chain),
        cmocka_unit_test(test_load_bias),
        cmocka_unit_test(test_argc),
        cmocka_unit_test(test_recorded_calls),
        cmocka_unit_test(test_load_bias_without_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
