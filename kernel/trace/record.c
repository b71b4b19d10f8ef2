// Records of a trace: pages for the writer, whole records for the reader.
//
// A page belongs to the writer from the moment it is opened until its last
// byte is reserved, and to the reader until it is freed. `opened` and `freed`
// count pages without end. A page is clear before it counts as opened: the
// memory is, when it is new, and the writer clears what it uses again.
//
// One writer at a time opens a page: another one, on top of it, finds no room
// (`limit` is 0) and `opening`, and its record is lost, which is counted.
//
// Records have a price, which is paid in time when the next page is to be
// opened. A writer that has paid for more time than has passed is throttled
// until then: what comes meanwhile is lost, and counted as in a full ring.
//
// In a flight the writer frees the oldest page, once it is complete: a writer
// that was interrupted there still fills its record.
#include "kernel/trace/record.h"
#include "arch/cpu.h"
#include "arch/irq.h"
#include "kernel/base/log.h"
#include "kernel/base/thread.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/heap.h"

// --- memory -----------------------------------------------------------------

_Static_assert(SENSOR_TRACE_PAGE == PAGE_SIZE && TRACE_PAGE == PAGE_SIZE,
               "pages of a ring");

static u32 memory_pages(u32 bytes)
{
    return (SENSOR_DATA + sensor_trace_head(bytes) + bytes) / PAGE_SIZE;
}

bool trace_ring_alloc(struct trace_ring *r, u32 bytes, bool *wake, bool flight)
{
    assert(bytes >= 2 * PAGE_SIZE && !(bytes & (bytes - 1)));
    u32 pages = memory_pages(bytes);
    u8 *at = vmap_alloc(pages, PROT_R | PROT_W, FRAME_BUFFER);
    if (!at)
        return false;
    *r = (struct trace_ring){
        .shared = (struct sensor_trace *)(at + SENSOR_DATA),
        .bytes = at + SENSOR_DATA + sensor_trace_head(bytes),
        .pages = bytes / PAGE_SIZE,
        .wake = wake,
        .flight = flight,
    };
    return true;
}

static u8 *page(const struct trace_ring *r, u32 n)
{
    return r->bytes + (n & (r->pages - 1)) * PAGE_SIZE;
}

void trace_ring_clear(struct trace_ring *r)
{
    for (u32 n = 0; n < MIN(r->shared->opened, r->pages); n++)
        memset(page(r, n), 0, PAGE_SIZE);
    memset(r->shared, 0, sizeof(*r->shared));
    r->shared->numbers[0] = 0;
    *r = (struct trace_ring){
        .shared = r->shared,
        .bytes = r->bytes,
        .pages = r->pages,
        .wake = r->wake,
        .flight = r->flight,
    };
}

void trace_ring_throttle(struct trace_ring *r, u32 price, u32 burst)
{
    r->price = price;
    r->burst = burst;
}

void *trace_ring_memory(const struct trace_ring *r, u32 *pages)
{
    *pages = memory_pages(r->pages * PAGE_SIZE);
    return r->bytes ? (u8 *)r->shared - SENSOR_DATA : NULL;
}

void *trace_ring_take_memory(struct trace_ring *r, u32 *pages)
{
    void *memory = trace_ring_memory(r, pages);
    r->bytes = NULL;
    return memory;
}

void trace_ring_free(struct trace_ring *r)
{
    u32 pages;
    void *memory = trace_ring_take_memory(r, &pages);
    if (memory)
        vmap_free(memory, pages);
}

// --- writers ----------------------------------------------------------------

static u32 epoch_of(u64 time)
{
    return (u32)(time >> TRACE_TIME_BITS);
}

static void publish(void *record, u64 time, u32 type, u32 bytes)
{
    __atomic_store_n((u32 *)record, TRACE_HEAD(time, type, bytes / 4),
                     __ATOMIC_RELEASE);
}

static void fill_time(struct trace_time *t, u64 now)
{
    t->thread = READ_ONCE(current_base()->tid);
    t->time[0] = (u32)now;
    t->time[1] = (u32)(now >> 32);
}

// What is left of the page is too short for the record. Nobody else reserves
// there: `limit` is 0.
static void fill_up(struct trace_ring *r)
{
    u32 at = READ_ONCE(r->place.at), rest = -at & (PAGE_SIZE - 1);
    WRITE_ONCE(r->place.at, at + rest);
    for (u32 n; rest; rest -= n, at += n) {
        n = MIN(rest, TRACE_WORDS_MAX * 4);
        publish((void *)at, 0, TRACE_R_PAD, n);
    }
}

static void wake_reader(struct trace_ring *r)
{
    if (!trace_ring_quarter_full(r) || READ_ONCE(*r->wake))
        return;
    WRITE_ONCE(*r->wake, true);
    irq_raise_deferred();
}

// Bytes of complete records at `from`, at most `most`, how many events are
// among them, and how many are missing there.
static u32 complete(const u8 *from, u32 most, u32 *events, u32 *lost)
{
    u32 n = 0;
    *events = *lost = 0;
    while (n < most) {
        u32 head = __atomic_load_n((const u32 *)(from + n), __ATOMIC_ACQUIRE);
        u32 size = TRACE_HEAD_WORDS(head) * 4;
        if (!size || size > most - n)
            break;
        u32 type = TRACE_HEAD_TYPE(head);
        if (type < TRACE_R_PAD || type > TRACE_R_LOST)
            (*events)++;
        else if (type == TRACE_R_LOST)
            *lost += ((const struct trace_lost *)(from + n))->count;
        n += size;
    }
    return n;
}

// The page `freed` may be overwritten. The number comes first: whoever sees
// that it is freed finds it.
static void free_page(struct trace_ring *r)
{
    struct sensor_trace *s = r->shared;
    u32 next = s->freed + 1;
    WRITE_ONCE(s->numbers[next & (2 * r->pages - 1)], r->number);
    __atomic_store_n(&s->freed, next, __ATOMIC_RELEASE);
}

static bool drop_oldest(struct trace_ring *r)
{
    u32 events, lost;
    if (complete(page(r, r->shared->freed), PAGE_SIZE, &events, &lost) <
        PAGE_SIZE)
        return false;
    r->overwritten += events;
    r->number += events + lost;
    free_page(r);
    return true;
}

static bool has_free_page(const struct trace_ring *r)
{
    u32 freed = __atomic_load_n(&r->shared->freed, __ATOMIC_ACQUIRE);
    return r->shared->opened - freed < r->pages;
}

// A page that is freed is overwritten: trace_ring_copy and monitors see by
// `freed` and `begun`, which precede, that what they copy is.
static u8 *clear_page(struct trace_ring *r)
{
    u8 *start = page(r, r->shared->opened);
    WRITE_ONCE(r->shared->begun, r->shared->opened + 1);
    barrier();
    if (r->shared->opened >= r->pages)
        memset(start, 0, PAGE_SIZE);
    return start;
}

static void begin_page(struct trace_ring *r)
{
    struct sensor_trace *s = r->shared;
    u8 *start = clear_page(r);
    struct trace_lost *first = (struct trace_lost *)start;
    u32 lost = READ_ONCE(s->lost), count = lost - s->reported;
    u32 bytes = count ? sizeof(*first) : sizeof(first->time);
    u64 now = rdtsc();
    fill_time(&first->time, now);
    if (count)
        first->count = count;
    WRITE_ONCE(s->reported, lost);
    publish(first, now, count ? TRACE_R_LOST : TRACE_R_TIME, bytes);
    __atomic_store_n(&s->opened, s->opened + 1, __ATOMIC_RELEASE);
    WRITE_ONCE(r->place.epoch, epoch_of(now));
    WRITE_ONCE(r->place.at, (u32)start + bytes);
    barrier();
    WRITE_ONCE(r->place.limit, (u32)start + PAGE_SIZE); // last: it is open
    wake_reader(r);
}

// It only rises: if an NMI has paid between the two reads, and the upper half
// is the same, the lower one is the later.
static u64 paid(const struct trace_ring *r)
{
    u32 low, high;
    do {
        high = READ_ONCE(r->paid_high);
        low = READ_ONCE(r->paid_low);
    } while (unlikely(high != READ_ONCE(r->paid_high)));
    return (u64)high << 32 | low;
}

static bool is_throttled(const struct trace_ring *r)
{
    return unlikely(paid(r) > rdtsc());
}

// Pays for the records since the last page. Time that was not used for records
// can be until `burst` cycles later.
static void pay(struct trace_ring *r)
{
    u64 now = rdtsc();
    u32 records = READ_ONCE(r->place.count) - r->paid_for;
    u64 from = MAX(paid(r) + r->burst, now) - r->burst;
    u64 until = from + (u64)records * r->price;
    r->paid_for += records;
    WRITE_ONCE(r->paid_low, (u32)until);
    WRITE_ONCE(r->paid_high, (u32)(until >> 32));
}

static bool lose(struct trace_ring *r, bool throttled)
{
    if (throttled)
        word_increment(&r->shared->throttled);
    word_increment(&r->shared->lost);
    return false;
}

static bool next_page(struct trace_ring *r)
{
    bool there = false, throttled = false;
    if (!READ_ONCE(r->opening)) {
        WRITE_ONCE(r->opening, true);
        WRITE_ONCE(r->place.limit, 0);
        barrier();
        fill_up(r);
        pay(r);
        throttled = is_throttled(r);
        there =
            !throttled && (has_free_page(r) || (r->flight && drop_oldest(r)));
        if (there)
            begin_page(r);
        barrier();
        WRITE_ONCE(r->opening, false);
    }
    return there || lose(r, throttled);
}

// The epoch or the thread is another one, and there is room for the record that
// says so. It costs as much as others.
static void put_time(struct trace_ring *r)
{
    u32 bytes = sizeof(struct trace_time), at;
    u64 now;
    do {
        at = READ_ONCE(r->place.at);
        now = rdtsc();
        if (at + bytes > READ_ONCE(r->place.limit))
            return; // another writer came between
    } while (!word_replace(&r->place.at, at, at + bytes));
    fill_time((struct trace_time *)at, now);
    WRITE_ONCE(r->place.epoch, epoch_of(now));
    publish((void *)at, now, TRACE_R_TIME, bytes);
    word_increment(&r->place.count);
}

bool trace_ring_make_room(struct trace_ring *r, u32 bytes)
{
    u32 both = bytes + sizeof(struct trace_time);
    // While a page is opened, `paid` is being changed, and there is no room.
    if (!READ_ONCE(r->opening) && is_throttled(r))
        return lose(r, true);
    if (READ_ONCE(r->place.at) + both > READ_ONCE(r->place.limit))
        return next_page(r);
    put_time(r);
    return true;
}

u64 trace_ring_reserve(struct trace_ring *r, u32 words)
{
    u32 at, low;
    do {
        for (;;) {
            at = READ_ONCE(r->place.at);
            if (word_is(&r->place.epoch, trace_time(&low)) &&
                at + words * 4 <= READ_ONCE(r->place.limit))
                break;
            if (!trace_ring_make_room(r, words * 4))
                return 0;
        }
    } while (!word_replace(&r->place.at, at, at + words * 4));
    word_increment(&r->place.count);
    return (u64)low << 32 | at;
}

// --- the reader -------------------------------------------------------------

bool trace_ring_quarter_full(const struct trace_ring *r)
{
    const struct sensor_trace *s = r->shared;
    u32 freed = __atomic_load_n(&s->freed, __ATOMIC_RELAXED);
    return !r->flight && READ_ONCE(s->opened) - freed > MAX(r->pages / 4, 1u);
}

u32 trace_ring_lost(const struct trace_ring *r)
{
    return READ_ONCE(r->shared->lost);
}

u32 trace_ring_throttled(const struct trace_ring *r)
{
    return READ_ONCE(r->shared->throttled);
}

// A writer has interrupts off from the moment at which it reads its record's
// time: when its CPU takes an interrupt, the record is complete.
u64 trace_complete_until(void)
{
    u64 until = rdtsc();
    smp_quiesce_others();
    return until;
}

u64 trace_page_time(const u8 page[TRACE_PAGE])
{
    const struct trace_time *first = (const struct trace_time *)page;
    return (u64)first->time[1] << 32 | first->time[0];
}

u64 trace_ring_keep(struct trace_ring *r, u64 time)
{
    const struct sensor_trace *s = r->shared;
    while (s->opened - s->freed > 1 &&
           trace_page_time(page(r, s->freed + 1)) <= time && drop_oldest(r))
        ;
    return s->freed ? trace_page_time(page(r, s->freed)) : 0;
}

u32 trace_ring_copy(const struct trace_ring *r, u32 n, u8 to[TRACE_PAGE])
{
    u32 events, lost;
    memcpy(to, page(r, n), PAGE_SIZE);
    barrier(); // loads are in order (SDM vol. 3, 9.2.2)
    return (s32)(READ_ONCE(r->shared->freed) - n) > 0
               ? 0
               : complete(to, PAGE_SIZE, &events, &lost);
}

const void *trace_ring_peek(struct trace_ring *r, u32 room, u32 *bytes)
{
    const struct sensor_trace *s = r->shared;
    const u8 *from = page(r, s->freed) + r->offset;
    if (s->freed == __atomic_load_n(&s->opened, __ATOMIC_ACQUIRE))
        room = 0; // not opened yet
    *bytes = complete(from, MIN(PAGE_SIZE - r->offset, room), &r->peeked,
                      &r->peeked_lost);
    return from;
}

void trace_ring_consume(struct trace_ring *r, u32 bytes)
{
    r->offset += bytes;
    r->recorded += r->peeked;
    r->number += r->peeked + r->peeked_lost;
    if (r->offset == PAGE_SIZE) {
        r->offset = 0;
        free_page(r);
    }
}
