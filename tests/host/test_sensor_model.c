// The protocol of event lists (<strobe/sensor_post.h>,
// user/libread/sensor_read.c), with all interleavings of two writers, one
// reader and four slots, and a writer's death at each step. Each step is one
// access to the shared memory, as x86 orders them: stores in program order,
// locked instructions at once. Bugs that are planted in the model are found.
#include "test.h"

#include "all_states.h"

#define SLOTS 4u
#define WRITERS 2u

enum bug { NONE, TAKES_ANY_SLOT, TAKES_LIVING, THERE_TOO_EARLY, READS_ONCE };

enum writer_step { NUMBER, LOOK, CLAIM, FIRST, SECOND, PUBLISH, DEAD };
enum reader_step { BEGIN, STATE, COPY_FIRST, COPY_SECOND, AGAIN, NOT_THERE };

struct state {
    u8 next;
    struct {
        u8 state, first, second;
    } slots[SLOTS];
    struct {
        u8 step, number, before, left;
    } writers[WRITERS];
    u8 step, cursor, end, over, seen, first, second; // the reader's
    u8 lost, wrong;
    u16 read; // a bit for each number
};

static u8 there(u8 number)
{
    return (u8)((number + 1) << 1);
}

// --- writers

static void posted(struct state *s, u32 w)
{
    s->writers[w].step = NUMBER;
    s->writers[w].left--;
}

// Whether the slot's owner will not go on, asked a round later. (Its thread is
// in the slot from the claim on: they change at once.)
static bool may_take_over(const struct state *s, u8 n, enum bug bug)
{
    u8 state = s->slots[n % SLOTS].state;
    for (u32 w = 0; w < WRITERS; w++) {
        u8 number = s->writers[w].number;
        if (state == (there(number) | 1) && n - number >= (int)SLOTS)
            return bug == TAKES_LIVING || s->writers[w].step == DEAD;
    }
    return false;
}

static void write_step(struct state *s, u32 w, enum bug bug)
{
    u8 n = s->writers[w].number, busy = there(n) | 1;
    u8 *slot_state = &s->slots[n % SLOTS].state;
    u8 before = s->writers[w].before;
    switch (s->writers[w].step++) {
    case NUMBER:
        s->writers[w].number = s->next++;
        break;
    case LOOK:
        s->writers[w].before = *slot_state;
        if (bug != TAKES_ANY_SLOT &&
            ((u8)(busy - *slot_state) > 0x7f ||
             (*slot_state & 1 && !may_take_over(s, n, bug))))
            posted(s, w);
        break;
    case CLAIM:
        if (bug != TAKES_ANY_SLOT && *slot_state != before)
            posted(s, w);
        else
            *slot_state = bug == THERE_TOO_EARLY ? there(n) : busy;
        break;
    case FIRST:
        s->slots[n % SLOTS].first = n;
        break;
    case SECOND:
        s->slots[n % SLOTS].second = n;
        break;
    case PUBLISH:
        *slot_state = there(n);
        posted(s, w);
        break;
    }
}

static bool has_ended(const struct state *s, u32 w)
{
    return s->writers[w].step == DEAD ||
           (s->writers[w].step == NUMBER && !s->writers[w].left);
}

// --- the reader: sensor_cursor_next and sensor_see

static void leave(struct state *s)
{
    s->lost++;
    s->cursor++;
    s->step = BEGIN;
}

static void begin(struct state *s)
{
    s->over = has_ended(s, 0) && has_ended(s, 1);
    s->end = s->next;
    if (s->end - s->cursor > (int)SLOTS) {
        s->lost += s->end - s->cursor - SLOTS;
        s->cursor = s->end - SLOTS;
    }
    s->step = s->cursor == s->end ? BEGIN : STATE;
}

static void not_there(struct state *s)
{
    u8 mine = there(s->cursor);
    bool later = (u8)(s->seen - mine) < 0x80 && s->seen != (mine | 1);
    bool pending = !later && s->next - s->cursor <= (int)SLOTS;
    if (pending && !s->over && s->end - s->cursor <= (int)SLOTS / 2)
        s->step = BEGIN;
    else
        leave(s);
}

static void take(struct state *s)
{
    s->wrong |= s->first != s->cursor || s->second != s->cursor;
    s->read |= (u16)(1u << s->cursor);
    s->cursor++;
    s->step = BEGIN;
}

static void read_step(struct state *s, enum bug bug)
{
    u32 slot = s->cursor % SLOTS;
    switch (s->step++) {
    case BEGIN:
        begin(s);
        break;
    case STATE:
        s->seen = s->slots[slot].state;
        if (s->seen != there(s->cursor))
            s->step = NOT_THERE;
        break;
    case COPY_FIRST:
        s->first = s->slots[slot].first;
        break;
    case COPY_SECOND:
        s->second = s->slots[slot].second;
        break;
    case AGAIN:
        if (bug == READS_ONCE || s->slots[slot].state == there(s->cursor))
            take(s);
        else
            leave(s);
        break;
    case NOT_THERE:
        not_there(s);
        break;
    }
}

// --- all states that can be reached

static void add_successors(const struct state *s, enum bug bug)
{
    struct state next;
    for (u32 w = 0; w < WRITERS; w++) {
        if (has_ended(s, w))
            continue;
        next = *s;
        write_step(&next, w, bug);
        states_add(&next);
        next = *s;
        next.writers[w].step = DEAD;
        states_add(&next);
    }
    next = *s;
    read_step(&next, bug);
    states_add(&next);
}

// At the end each number was read once, or is counted as lost.
static bool is_wrong(const struct state *s)
{
    if (s->wrong)
        return true;
    if (!has_ended(s, 0) || !has_ended(s, 1) || s->cursor != s->next)
        return false;
    return __builtin_popcount(s->read) + s->lost != s->next;
}

// The number of states, or 0 if a wrong one is reached. The first writer has to
// be able to overtake the second by all slots.
static u32 explore(enum bug bug)
{
    struct state first;
    bool wrong = false;
    memset(&first, 0, sizeof(first));
    first.writers[0].left = SLOTS + 1;
    first.writers[1].left = 1;
    states_begin(sizeof(first));
    states_add(&first);
    struct state s;
    while (!wrong && states_take(&s)) {
        wrong = is_wrong(&s);
        add_successors(&s, bug);
    }
    states_end();
    return wrong ? 0 : all_states.count;
}

static void test_all_interleavings(void **state UNUSED)
{
    u32 count = explore(NONE);
    print_message("%u states\n", count);
    assert_true(count > 10000);
}

static void test_planted_bugs(void **state UNUSED)
{
    assert_int_equal(explore(TAKES_ANY_SLOT), 0);
    assert_int_equal(explore(TAKES_LIVING), 0);
    assert_int_equal(explore(THERE_TOO_EARLY), 0);
    assert_int_equal(explore(READS_ONCE), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_interleavings),
        cmocka_unit_test(test_planted_bugs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
