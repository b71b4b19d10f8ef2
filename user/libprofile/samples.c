#include "samples.h"

#include "lib/types.h"
#include "user_chain.h"

#include <stdlib.h>
#include <string.h>

#define CHAINS_MAX (1u << 20)
#define COUNTS_FIRST 1024u
#define COUNTS_MAX (1u << 20)
#define NONE SAMPLES_UNCOUNTED

static uint32_t bucket_of(const struct samples *s, const struct sample_count *c)
{
    uint32_t h = c->chain * 0x9e3779b9u;
    h = (h ^ h >> 15 ^ c->thread) * 0x85ebca6bu;
    h = (h ^ h >> 13 ^
         (c->event << 20 ^ c->cpu << 4 ^ c->mode << 1 ^ c->irqs_off)) *
        0x9e3779b9u;
    return (h ^ h >> 16) & (s->room - 1);
}

static bool same(const struct sample_count *a, const struct sample_count *b)
{
    return a->chain == b->chain && a->thread == b->thread &&
           a->task == b->task && a->image == b->image &&
           a->program == b->program && a->cpu == b->cpu && a->mode == b->mode &&
           a->irqs_off == b->irqs_off && a->event == b->event;
}

static void enter(struct samples *s, uint32_t i)
{
    uint32_t *bucket = &s->buckets[bucket_of(s, &s->counts[i])];
    s->counts[i].next = *bucket;
    *bucket = i;
}

static int grow(struct samples *s)
{
    uint32_t room = s->room == 0 ? COUNTS_FIRST : s->room * 2;
    if (room > s->max)
        return -1;
    uint32_t *buckets = malloc(room * sizeof(*buckets));
    if (!buckets)
        return -1;
    void *counts = realloc(s->counts, room * sizeof(*s->counts));
    if (!counts) {
        free(buckets);
        return -1;
    }
    free(s->buckets);
    s->counts = counts;
    s->buckets = buckets;
    s->room = room;
    for (uint32_t i = 0; i < room; i++)
        buckets[i] = NONE;
    for (uint32_t i = 0; i < s->count; i++)
        enter(s, i);
    return 0;
}

uint32_t samples_count(struct samples *s, const struct sample_count *c)
{
    double squares = (double)c->period * c->period / c->samples;
    s->total += c->samples;
    s->period += c->period;
    uint32_t i = s->buckets[bucket_of(s, c)];
    while (i != NONE && !same(&s->counts[i], c))
        i = s->counts[i].next;
    if (i != NONE) {
        s->counts[i].samples += c->samples;
        s->counts[i].period += c->period;
        s->counts[i].squares += squares;
        return i;
    }
    if (s->count == s->room && grow(s) < 0) {
        s->uncounted += c->samples;
        return NONE;
    }
    s->counts[s->count] = *c;
    s->counts[s->count].squares = squares;
    enter(s, s->count);
    return s->count++;
}

// --- reading the stream -----------------------------------------------------

// Whether the address is generated code (JIT): outside the program's code, if
// that is known, and not in a symbol.
static bool is_jit(struct samples *s, uint32_t image, uint32_t address)
{
    const struct image *m = &s->images.list[image];
    return m->code_size > 0 && address - m->code_address >= m->code_size &&
           !images_symbol(&s->images, image, address);
}

// Returns the place of an address in the task's memory. For generated code the
// address is kept as it is: perf maps contain addresses in memory.
static struct place place_of(struct samples *s, const struct user_code *code,
                             uint32_t task, uint32_t address)
{
    uint32_t own = address - code->load_bias;
    if (s->vdso != 0 && address - s->vdso < VDSO_BYTES)
        return (struct place){ IMAGE_VDSO, address - s->vdso };
    if (is_jit(s, code->image, own))
        return (struct place){ images_add_jit(&s->images, task), address };
    return (struct place){ code->image, own };
}

// Returns the number of callers, from the outermost on, that the chain shares
// with the last chain.
static uint32_t count_common(const struct last_chain *last,
                             const struct user_code *code, uint32_t task,
                             const uint32_t *chain, uint32_t callers)
{
    uint32_t most = MIN(callers, last->depth), n = 0;
    if (code->image != last->image || code->load_bias != last->load_bias ||
        (last->jit_task != 0 && last->jit_task != task))
        return 0;
    while (n < most && chain[callers - n] == last->back[n])
        n++;
    return n;
}

// State while a chain is added, from the outermost caller inwards. A node is
// identified by its place and its parent.
struct adding {
    struct samples *s;
    const struct user_code *code;
    uint32_t task;
    uint32_t *chain; // the innermost first
    uint32_t depth, proven;
    uint32_t node; // the node added last
};

static void add_caller(struct adding *a, uint32_t back, uint32_t node)
{
    struct last_chain *last = &a->s->last;
    a->node = node;
    if (last->depth == USER_CHAIN_MAX)
        return;
    last->back[last->depth] = back;
    last->node[last->depth++] = node;
}

static struct place caller_place(const struct adding *a, uint32_t back)
{
    if (back < CHAIN_MARKS)
        return (struct place){ IMAGE_CUT, back - 1 };
    struct place p = place_of(a->s, a->code, a->task, back - 1);
    if (a->s->images.list[p.image].jit_task != 0)
        a->s->last.jit_task = a->task;
    return p;
}

// Adds a mark after the chain's entry i. `instead`: the mark replaces all
// callers.
static void add_mark(struct adding *a, uint32_t i, bool instead)
{
    struct place place = { IMAGE_CUT, CHAIN_BROKEN - 1 };
    if (instead) {
        a->depth = i + 1;
        a->node = CHAIN_ROOT;
        a->s->last.depth = 0;
    }
    if (a->depth < USER_CHAIN_MAX) {
        memmove(a->chain + i + 2, a->chain + i + 1,
                (a->depth - i - 1) * sizeof(*a->chain));
        a->chain[i + 1] = CHAIN_BROKEN;
        a->depth++;
    }
    add_caller(a, CHAIN_BROKEN, chains_add(&a->s->chains, a->node, place));
}

// Checks whether entry i + 1, which was added, can have called entry i. That is
// known from frame pointers alone. If it cannot, the chain is marked.
static void check_caller(struct adding *a, uint32_t i)
{
    uint32_t callee = a->chain[i] - (i > 0), back = a->chain[i + 1];
    bool mark = a->chain[i] < CHAIN_MARKS;
    if (back < CHAIN_MARKS)
        return;
    enum user_call call = user_call(&a->s->images, a->code, callee, back);
    // An outermost caller outside the program's code is not valid either.
    bool nothing = call == CALL_NONE ||
                   (call == CALL_UNKNOWN &&
                    (i + 2 == a->depth || a->chain[i + 2] < CHAIN_MARKS));
    if (mark && nothing) {
        a->depth = i + 1;
        a->node = CHAIN_ROOT;
        a->s->last.depth = 0;
    } else if (!mark && (nothing || call == CALL_FARTHER)) {
        add_mark(a, i, nothing);
    }
}

// Returns a node for entry i of the chain, with the last added node as parent.
static uint32_t new_node(struct adding *a, uint32_t i, struct place place)
{
    if (i >= a->proven && i + 1 < a->depth)
        check_caller(a, i);
    return chains_add(&a->s->chains, a->node, place);
}

// The fast path: most nodes exist already.
static inline uint32_t node_of(struct adding *a, uint32_t i, struct place place)
{
    uint32_t node = chains_find(&a->s->chains, a->node, place);
    return node != CHAIN_NONE ? node : new_node(a, i, place);
}

// The outermost `common` callers are the same as in the last chain.
static NOINLINE uint32_t add_callers(struct adding *a, uint32_t common)
{
    struct last_chain *last = &a->s->last;
    last->image = a->code->image;
    last->load_bias = a->code->load_bias;
    last->depth = common;
    last->jit_task = common > 0 ? last->jit_task : 0;
    a->node = common > 0 ? last->node[common - 1] : CHAIN_ROOT;
    for (uint32_t i = a->depth - 1 - common; i > 0; i--) {
        uint32_t back = a->chain[i];
        uint32_t node = node_of(a, i, caller_place(a, back));
        add_caller(a, back, node);
    }
    uint32_t node =
        node_of(a, 0, place_of(a->s, a->code, a->task, a->chain[0]));
    // Once nodes were refused, the cache is not used, so that chains_add
    // counts every chain that is cut.
    if (a->s->chains.cut > 0)
        last->depth = 0;
    return node;
}

// Returns the innermost node of a chain. Marks may be added to the chain.
static uint32_t add_user(struct samples *s, const struct user_code *code,
                         uint32_t task, uint32_t *chain, uint32_t *depth,
                         uint32_t proven)
{
    const struct last_chain *last = &s->last;
    if (*depth == 0)
        return CHAIN_ROOT;
    uint32_t callers = *depth - 1;
    uint32_t common = count_common(last, code, task, chain, callers);
    if (common == callers && common > 0) {
        uint32_t node = chains_find(&s->chains, last->node[common - 1],
                                    place_of(s, code, task, chain[0]));
        if (node != CHAIN_NONE)
            return node;
    }
    struct adding a = { .s = s,
                        .code = code,
                        .task = task,
                        .chain = chain,
                        .depth = *depth,
                        .proven = proven,
                        .node = CHAIN_ROOT };
    uint32_t node = add_callers(&a, common);
    *depth = a.depth;
    return node;
}

static enum sample_mode mode_of(uint32_t flags)
{
    if (flags & SPROFILE_F_IDLE)
        return MODE_IDLE;
    if (flags & SPROFILE_F_IRQ)
        return MODE_IRQ;
    return flags & SPROFILE_F_KERNEL ? MODE_KERNEL : MODE_USER;
}

static void take_sample(void *arg, const struct stream_sample *in)
{
    struct samples *s = arg;
    const struct program *p = programs_find(&s->programs, in->task, in->time);
    uint32_t image = p != NULL ? p->image : IMAGE_UNKNOWN;
    struct user_code code = { image, p != NULL ? p->load_bias : 0, s->vdso };
    uint32_t user[USER_CHAIN_MAX];
    uint32_t proven;
    images_hold(&s->images, image, in->task);
    uint32_t depth = user_chain(&s->images, &code, in, user, &proven);
    uint32_t node = add_user(s, &code, in->task, user, &depth, proven);
    if (in->flags & SPROFILE_F_KERNEL_CUT)
        node = chains_add(&s->chains, node,
                          (struct place){ IMAGE_CUT, CHAIN_DEEP - 1 });
    for (uint32_t i = in->kernel_depth; i-- > 0;)
        node =
            chains_add(&s->chains, node,
                       (struct place){ IMAGE_KERNEL, in->kernel[i] - (i > 0) });
    struct sample_count c = {
        .chain = node,
        .task = in->task,
        .thread = in->thread,
        .image = image,
        .program = programs_index(&s->programs, p),
        .cpu = in->cpu,
        .mode = mode_of(in->flags),
        .irqs_off = in->flags & SPROFILE_F_IRQS_OFF,
        .samples = 1,
        .period = in->period,
    };
    samples_count(s, &c);
    if (s->observer.sample)
        s->observer.sample(s->observer.arg,
                           &(struct counted_sample){ in, p, user, depth });
}

// The name of a first thread is its task's.
static void count_name(struct samples *s, const struct sprofile_task *t)
{
    bool first = t->parent == t->task;
    const struct program *now =
        first ? programs_find(&s->programs, t->task, UINT64_MAX) : NULL;
    struct program p = { .task = t->parent, .parent = t->task };
    if (first && !now)
        return;
    if (first)
        p = *now;
    p.time = t->head.time;
    strcpy(p.name, t->name);
    programs_add(first ? &s->programs : &s->threads, &p);
}

const char *samples_thread_name(const struct samples *s, uint32_t task,
                                uint32_t thread)
{
    const struct program *own = programs_find(&s->threads, thread, UINT64_MAX);
    const struct program *last = programs_find(&s->programs, task, UINT64_MAX);
    if (own && own->parent == task && thread != task)
        return own->name;
    return task
               ? programs_name(&s->programs, programs_index(&s->programs, last))
               : "kernel";
}

static void count_task(struct samples *s, const struct sprofile_task *t)
{
    struct program p = { .task = t->task,
                         .parent = t->parent,
                         .time = t->head.time,
                         .load_bias = sprofile_load_bias(t) };
    if (t->kind == SPROFILE_T_NAMED)
        count_name(s, t);
    if (t->kind == SPROFILE_T_NAMED || t->kind == SPROFILE_T_ENDED)
        return;
    p.image = images_add(&s->images, t->path, t->build_id, t->build_id_size);
    images_hold(&s->images, p.image, t->task);
    strcpy(p.name, t->name);
    programs_add(&s->programs, &p);
}

static void take_task(void *arg, const struct sprofile_task *t)
{
    struct samples *s = arg;
    count_task(s, t);
    if (s->observer.task)
        s->observer.task(s->observer.arg, t);
}

static void take_times(void *arg, const struct sprofile_times *t)
{
    task_times_take(&((struct samples *)arg)->times, t);
}

static void take_lost(void *arg, uint32_t cpu, uint64_t n)
{
    struct samples *s = arg;
    s->lost += n;
    if (s->observer.lost)
        s->observer.lost(s->observer.arg, cpu, n);
}

int samples_init(struct samples *s, image_reader read)
{
    *s = (struct samples){ .max = COUNTS_MAX };
    if (images_init(&s->images, read) < 0)
        return -1;
    programs_init(&s->programs);
    programs_init(&s->threads);
    if (chains_init(&s->chains, CHAINS_MAX) < 0 || grow(s) < 0) {
        samples_free(s);
        return -1;
    }
    s->reader = (struct stream_reader){ .sample = take_sample,
                                        .task = take_task,
                                        .times = take_times,
                                        .lost = take_lost,
                                        .arg = s };
    return 0;
}

void samples_free(struct samples *s)
{
    images_free(&s->images);
    programs_free(&s->programs);
    programs_free(&s->threads);
    task_times_free(&s->times);
    chains_free(&s->chains);
    free(s->counts);
    free(s->buckets);
    *s = (struct samples){ 0 };
}

void samples_clear(struct samples *s)
{
    s->count = s->last.depth = 0;
    s->total = s->period = s->uncounted = s->lost = 0;
    for (uint32_t i = 0; i < s->room; i++)
        s->buckets[i] = NONE;
    chains_clear(&s->chains);
}

size_t samples_add_stream(struct samples *s, const void *bytes, size_t size)
{
    return stream_read(&s->reader, bytes, size);
}
