// The protocol of rings (<strobe/sensor_ring.h>,
// user/libread/sensor_ring_read.c), with all interleavings of a writer, a
// handler that interrupts it anywhere, and a reader, with the death of both
// writers at each step, overwriting and stopping. Each step is one access to
// the shared memory, as x86 orders them. Bugs that are planted in the model are
// found.
#include "test.h"

#include "all_states.h"

#define UNITS 4u
#define BLOCK 2u
#define OUTER 0u
#define HANDLER 1u

enum bug {
    NONE,
    EACH_PUBLISHES, // also one that interrupts another
    LOOKS_ONCE,     // not again, after its depth is 0
    PLAIN_TAKE,     // room and number, without looking whether they changed
    LAPS,           // overwrites what another has not finished
    NOT_CHECKED,    // the reader believes what it copied
};

enum writer_step {
    IDLE,
    ENTER,
    ENTERED,
    LOOK,
    TAKE,
    PAD_SIZE,
    PAD_NUMBER,
    SIZE,
    NUMBER,
    BODY,
    BODY_END,
    LEAVE,
    PUBLISH_LOOK,
    PUBLISH,
    LEFT,
    AGAIN_LOOK,
    AGAIN,
    REENTER,
    DEAD
};
enum reader_step {
    BEGIN,
    LOOK_AHEAD,
    COPY_SIZE,
    COPY_NUMBER,
    COPY_BODY,
    COPY_BODY_END,
    CHECK,
    REST_PLACE,
    REST_NUMBER,
    REST_AGAIN
};

struct place {
    u8 at, number;
};

struct state {
    struct place taken;
    u8 published, depth, released, stops;
    struct {
        u8 first, second; // size (0: pad) and number, or twice the number
    } units[UNITS];
    struct {
        u8 step, left, depth, start, units, found;
        struct place old;
    } writers[2];
    struct { // the reader
        u8 step, at, next, end, over, lost, first, second, body, body_end, rest;
    } r;
    u8 wrong;
    u16 read; // a bit for each number
};

// --- writers

static void take(struct state *s, u32 w, enum bug bug)
{
    struct place old = s->writers[w].old;
    if (bug != PLAIN_TAKE &&
        (s->taken.at != old.at || s->taken.number != old.number)) {
        s->writers[w].old = s->taken;
        s->writers[w].step = TAKE;
        return;
    }
    u8 left = BLOCK - old.at % BLOCK, units = s->writers[w].units;
    u8 start = units > left ? old.at + left : old.at;
    u8 kept = s->stops ? s->released : s->published;
    bool fits = bug == LAPS || (u8)(start + units - kept) <= UNITS;
    s->writers[w].start = start;
    s->taken = (struct place){ fits ? start + units : old.at, old.number + 1 };
    s->writers[w].step = !fits ? LEAVE : start == old.at ? SIZE : PAD_SIZE;
}

static void done(struct state *s, u32 w)
{
    s->writers[w].step = IDLE;
    s->writers[w].old = (struct place){ 0 };
    s->writers[w].depth = s->writers[w].start = s->writers[w].found = 0;
}

static void begin_record(struct state *s, u32 w)
{
    s->writers[w].units = 1 + (s->writers[w].left + w) % 2;
    s->writers[w].left--;
}

// From ENTER to BODY_END.
static void write_record(struct state *s, u32 w, enum bug bug)
{
    struct place old = s->writers[w].old;
    u8 start = s->writers[w].start;
    switch (s->writers[w].step++) {
    case ENTER:
        s->writers[w].depth = s->depth;
        break;
    case ENTERED:
        s->depth = s->writers[w].depth + 1;
        break;
    case LOOK:
        s->writers[w].old = s->taken;
        break;
    case TAKE:
        take(s, w, bug);
        break;
    case PAD_SIZE:
        s->units[old.at % UNITS].first = 0;
        break;
    case PAD_NUMBER:
        s->units[old.at % UNITS].second = 0;
        break;
    case SIZE:
        s->units[start % UNITS].first = s->writers[w].units;
        break;
    case NUMBER:
        s->units[start % UNITS].second = old.number;
        if (s->writers[w].units == 1)
            s->writers[w].step = LEAVE;
        break;
    case BODY:
        s->units[(start + 1) % UNITS].first = old.number;
        break;
    case BODY_END:
        s->units[(start + 1) % UNITS].second = old.number;
        break;
    }
}

// sensor_ring_end_
static void leave(struct state *s, u32 w, enum bug bug)
{
    switch (s->writers[w].step++) {
    case LEAVE:
        s->writers[w].depth = s->depth;
        if (s->depth != 1 && bug != EACH_PUBLISHES)
            s->writers[w].step = LEFT;
        break;
    case PUBLISH_LOOK:
        s->writers[w].found = s->taken.at;
        break;
    case PUBLISH:
        s->published = s->writers[w].found;
        break;
    case LEFT:
        s->depth = s->writers[w].depth - 1;
        if (s->writers[w].depth != 1 || bug == LOOKS_ONCE)
            done(s, w);
        break;
    case AGAIN_LOOK:
        s->writers[w].found = s->published;
        break;
    case AGAIN:
        if (s->writers[w].found == s->taken.at)
            done(s, w);
        break;
    case REENTER:
        s->depth = 1;
        s->writers[w].step = LEAVE;
        break;
    }
}

static void write_step(struct state *s, u32 w, enum bug bug)
{
    if (s->writers[w].step == IDLE) {
        begin_record(s, w);
        s->writers[w].step = ENTER;
    } else if (s->writers[w].step < LEAVE) {
        write_record(s, w, bug);
    } else {
        leave(s, w, bug);
    }
}

static bool dead(const struct state *s)
{
    return s->writers[OUTER].step == DEAD;
}

static bool idle(const struct state *s, u32 w)
{
    return s->writers[w].step == IDLE && !s->writers[w].left;
}

static bool ended(const struct state *s)
{
    return dead(s) || (idle(s, OUTER) && idle(s, HANDLER));
}

static bool may_step(const struct state *s, u32 w)
{
    if (dead(s) || idle(s, w))
        return false;
    return w == HANDLER || s->writers[HANDLER].step == IDLE;
}

// --- the reader: sensor_ring_cursor_next

static bool overtaken(const struct state *s)
{
    return (u8)(s->taken.at - s->r.at) > UNITS;
}

static void catch_up(struct state *s)
{
    s->r.over = ended(s);
    if (overtaken(s))
        s->r.at = (u8)((s->taken.at - UNITS + BLOCK - 1) / BLOCK * BLOCK);
}

static void look(struct state *s)
{
    s->r.end = s->published;
    u8 ahead = s->r.end - s->r.at;
    if (ahead - 1u > 0x7e)
        s->r.step = REST_PLACE;
}

static void believe(struct state *s)
{
    if (!s->r.first) { // a pad
        s->r.at += BLOCK - s->r.at % BLOCK;
        return;
    }
    u8 n = s->r.second;
    s->wrong |= s->r.first > 2 || n < s->r.next || n >= s->taken.number;
    s->wrong |= s->r.first == 2 && (s->r.body != n || s->r.body_end != n);
    s->wrong |= s->read >> n & 1;
    s->r.lost += n - s->r.next;
    s->read |= (u16)(1u << n);
    s->r.next = n + 1;
    s->r.at += s->r.first;
}

static void finish(struct state *s)
{
    u8 at = s->r.at, next = s->r.next, lost = s->r.lost;
    memset(&s->r, 0, sizeof(s->r));
    s->r.at = at;
    s->r.next = next;
    s->r.lost = lost;
}

static void count_rest(struct state *s)
{
    if (s->r.rest != s->taken.at) {
        s->r.rest = s->taken.at;
        s->r.step = REST_NUMBER;
        return;
    }
    if (s->r.over || s->r.rest == s->r.at) {
        s->r.lost += s->r.first - s->r.next;
        s->r.next = s->r.first;
    }
    finish(s);
}

static void read_step(struct state *s, enum bug bug)
{
    u32 unit = s->r.at % UNITS;
    switch (s->r.step++) {
    case BEGIN:
        catch_up(s);
        break;
    case LOOK_AHEAD:
        look(s);
        break;
    case COPY_SIZE:
        s->r.first = s->units[unit].first;
        break;
    case COPY_NUMBER:
        s->r.second = s->units[unit].second;
        if (s->r.first < 2 || unit % BLOCK)
            s->r.step = CHECK;
        break;
    case COPY_BODY:
        s->r.body = s->units[(unit + 1) % UNITS].first;
        break;
    case COPY_BODY_END:
        s->r.body_end = s->units[(unit + 1) % UNITS].second;
        break;
    case CHECK:
        if (bug == NOT_CHECKED || !overtaken(s))
            believe(s);
        finish(s);
        break;
    case REST_PLACE:
        s->r.rest = s->taken.at;
        break;
    case REST_NUMBER:
        s->r.first = s->taken.number;
        break;
    case REST_AGAIN:
        count_rest(s);
        break;
    }
}

// --- all states

static void add_successors(const struct state *s, enum bug bug)
{
    struct state next;
    for (u32 w = OUTER; w <= HANDLER; w++) {
        if (!may_step(s, w))
            continue;
        next = *s;
        write_step(&next, w, bug);
        states_add(&next);
    }
    if (!ended(s)) {
        next = *s;
        next.writers[OUTER].step = next.writers[HANDLER].step = DEAD;
        states_add(&next);
    }
    // The writer's task reads, too, and is where the reader is.
    if (s->stops && s->r.step == BEGIN && s->released != s->r.at) {
        next = *s;
        next.released = s->r.at;
        states_add(&next);
    }
    next = *s;
    read_step(&next, bug);
    states_add(&next);
}

// Without a writer under way all is published. At the end each number was read
// once, or is counted as lost.
static bool is_wrong(const struct state *s)
{
    if (s->wrong)
        return true;
    if (s->writers[OUTER].step == IDLE && s->writers[HANDLER].step == IDLE &&
        (s->published != s->taken.at || s->depth))
        return true;
    if (!ended(s) || s->r.step != BEGIN || s->r.next != s->taken.number)
        return false;
    return __builtin_popcount(s->read) + s->r.lost != s->taken.number;
}

static u32 explore(bool stops, enum bug bug)
{
    struct state s;
    bool wrong = false;
    memset(&s, 0, sizeof(s));
    s.stops = stops;
    s.writers[OUTER].left = 3;
    s.writers[HANDLER].left = 2;
    states_begin(sizeof(s));
    states_add(&s);
    while (!wrong && states_take(&s)) {
        wrong = is_wrong(&s);
        add_successors(&s, bug);
    }
    states_end();
    return wrong ? 0 : all_states.count;
}

static void test_all_interleavings(void **state UNUSED)
{
    for (u32 stops = 0; stops < 2; stops++) {
        u32 count = explore(stops, NONE);
        print_message("%s: %u states\n", stops ? "stops" : "overwrites", count);
        assert_true(count > 10000);
    }
}

static void test_planted_bugs(void **state UNUSED)
{
    assert_int_equal(explore(false, EACH_PUBLISHES), 0);
    assert_int_equal(explore(false, LOOKS_ONCE), 0);
    assert_int_equal(explore(true, PLAIN_TAKE), 0);
    assert_int_equal(explore(false, LAPS), 0);
    assert_int_equal(explore(false, NOT_CHECKED), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_interleavings),
        cmocka_unit_test(test_planted_bugs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
