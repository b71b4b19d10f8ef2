// Reading samples in mapped rings: whole records in order, also where a ring
// wraps; read-only mappings; wrong requests; rings that outlive the session;
// stacks as requested, also where the ring ends and after a loss.
#include "test.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <strobe/kbox.h>

#include "user/libstrobe/strobe.h"

#define PAGE 4096
#define ENOUGH 1000 // samples: a ring of one page wraps often
#define CPUS 32

static pid_t spinning(void)
{
    pid_t child = fork();

    check(child >= 0);
    while (child == 0)
        ;
    return child;
}

static void end_of(pid_t child)
{
    kill(child, SIGKILL);
    check(waitpid(child, NULL, 0) == child);
}

static struct seen {
    uint64_t samples, lost, times[CPUS];
    const char *piece;
} seen;

static void take(void *arg, const void *bytes, size_t size)
{
    struct seen *s = arg;
    size_t at = 0;

    s->piece = bytes;
    while (at < size) {
        const struct sprofile_record *r = (const void *)((char *)bytes + at);
        check(r->size >= sizeof(*r) && r->size % 8 == 0 && r->cpu < CPUS);
        if (r->type == SPROFILE_R_SAMPLE) {
            check(r->time >= s->times[r->cpu]);
            s->times[r->cpu] = r->time;
            s->samples++;
        } else if (r->type == SPROFILE_R_LOST) {
            s->lost += ((const struct sprofile_lost *)r)->count;
        }
        at += r->size;
    }
    check(at == size);
}

static void read_some(struct profile_session *s)
{
    check(profile_request(s) == 0);
    check(profile_answer(s, -1, take, &seen) >= 0);
}

static void whole_records_in_order(void)
{
    struct profile_session s;
    struct sprofile_info info;
    struct sprofile_options o = { .rate_hz = 8000,
                                  .flags = SPROFILE_O_STACKS,
                                  .ring_bytes = PAGE };
    pid_t child = spinning();

    check(profile_begin(&s, child, &o) == 0);
    while (seen.samples + seen.lost < ENOUGH)
        read_some(&s);
    check(profile_pause(&s, true) == 0);
    for (uint64_t before = 0; before != seen.samples;) {
        before = seen.samples;
        read_some(&s);
    }
    check(profile_info(&s, &info) == 0);
    // No record reports samples lost after the last one that found room.
    check(seen.samples == info.taken - info.lost && seen.lost <= info.lost);

    char *page = (char *)((uintptr_t)seen.piece & ~(uintptr_t)(PAGE - 1));
    check(mprotect(page, PAGE, PROT_READ | PROT_WRITE) < 0 && errno == EACCES);
    profile_end(&s);
    end_of(child);
    check(((const struct sprofile_record *)seen.piece)->size > 0);
    ok("whole records, in order, read where they lie");
}

// --- what the records contain ------------------------------------------------

void spin(void);
__asm__(".pushsection .text\n"
        ".type spin, @function\n"
        "spin: jmp spin\n"
        ".size spin, . - spin\n"
        ".popsection");

#define LOOKED_AT 300 // samples behind the first loss

static struct stacks {
    unsigned samples, depth, words; // the last two of the first sample
} stacks;

// All samples of spin() have the same stack.
static void compare(void *arg, const void *bytes, size_t size)
{
    struct stacks *s = arg;

    for (size_t at = 0; at < size;) {
        const struct sprofile_sample *r = (const void *)((char *)bytes + at);
        at += r->head.size;
        if (r->head.type != SPROFILE_R_SAMPLE || r->kernel_depth ||
            r->pc[r->stack_words] != (uintptr_t)spin)
            continue;
        if (s->samples++ == 0) {
            s->depth = r->user_depth;
            s->words = r->stack_words;
        }
        check(r->user_depth == s->depth && r->stack_words == s->words);
    }
}

static struct stacks stacks_of(pid_t task, uint32_t flags)
{
    struct sprofile_options o = { .rate_hz = 8000,
                                  .flags = flags,
                                  .ring_bytes = 1 };
    struct sprofile_info info = { 0 };
    struct profile_session s;

    stacks = (struct stacks){ 0 };
    check(profile_begin(&s, task, &o) == 0);
    while (info.lost == 0) {
        usleep(1000);
        check(profile_info(&s, &info) == 0);
    }
    while (stacks.samples < LOOKED_AT) {
        check(profile_request(&s) == 0);
        check(profile_answer(&s, -1, compare, &stacks) >= 0);
    }
    profile_end(&s);
    return stacks;
}

static void stacks_as_requested(void)
{
    pid_t child = fork();

    check(child >= 0);
    if (child == 0)
        spin();
    struct stacks plain = stacks_of(child, 0);
    struct stacks some = stacks_of(child, SPROFILE_O_STACKS);
    struct stacks deep = stacks_of(child, SPROFILE_O_STACKS | SPROFILE_O_DEEP);
    end_of(child);
    check(plain.depth == 1 && plain.words == 0);
    check(some.depth > 1 && some.words >= 2 + SPROFILE_STACK_WORDS);
    check(deep.depth == some.depth && deep.words > some.words);
    ok("stacks as requested, also where the ring ends and after a loss");
}

// --- by the calls themselves -------------------------------------------------

static int32_t command(int phone, uint32_t what, void *a, uint32_t b,
                       uint32_t c)
{
    struct ipc_call call = { .method = IPC_M_SPROFILE_ALL,
                             .arg = { what, (uintptr_t)a, b, c } };
    struct ipc_call answer;

    check(ipc_call(phone, &call) == 0);
    check(ipc_wait(phone, &answer, -1) == 0 && answer.id == call.id);
    return answer.retval;
}

static void wrong_requests(void)
{
    static _Alignas(8) char records[4 * PAGE];
    struct sprofile_span spans[CPUS + 1];
    struct sprofile_options o = { .size = sizeof(o), .rate_hz = 1000 };
    pid_t child = spinning();
    int phone = kbox_connect(child);

    check(phone >= 0);
    check(command(phone, SPROFILE_M_MAP, NULL, 0, 0) == -ESHUTDOWN);
    check(command(phone, SPROFILE_M_TASK_BEGIN, &o, 0, 0) == 0);
    check(command(phone, SPROFILE_M_DATA_READ, spans, sizeof(spans),
                  SPROFILE_READ_SPANS) == -EINVAL);
    check(command(phone, SPROFILE_M_MAP, NULL, 0, 0) == 0);
    check(command(phone, SPROFILE_M_DATA_READ, spans, sizeof(spans[0]),
                  SPROFILE_READ_SPANS) == -EINVAL);
    int32_t error; // 0 until there is a sample
    do
        error = command(phone, SPROFILE_M_DATA_READ, (void *)0xc0000000,
                        sizeof(spans), SPROFILE_READ_SPANS);
    while (error == 0);
    check(error == -EFAULT);

    // Both ways of reading in turn: no record is repeated or left out.
    seen = (struct seen){ 0 };
    for (int i = 0; i < 2; i++) {
        int n = command(phone, SPROFILE_M_DATA_READ, spans, sizeof(spans),
                        SPROFILE_READ_SPANS);
        check(n >= 0 && n % sizeof(spans[0]) == 0);
        for (unsigned k = 0; k < n / sizeof(spans[0]); k++)
            take(&seen, (void *)(uintptr_t)spans[k].address, spans[k].size);
        n = command(phone, SPROFILE_M_DATA_READ, records, sizeof(records), 0);
        check(n >= 0);
        take(&seen, records, n);
    }
    check(seen.samples > 0);
    check(command(phone, SPROFILE_M_MAP, NULL, 0, 0) == 0); // once more
    close(phone);
    end_of(child);
    ok("what is asked for wrongly; copies and spans in turn");
}

// A sleeping task has no samples; the answer says so in time, also by poll.
static void no_data_is_reported(void)
{
    struct sprofile_options o = { .rate_hz = 1000 };
    struct profile_session s;
    pid_t child = fork();
    int n;

    check(child >= 0);
    while (child == 0)
        pause();
    check(profile_begin(&s, child, &o) == 0);
    do { // samples of its way to sleep may come first
        struct pollfd phone = { .fd = s.phone, .events = POLLIN };
        check(profile_request(&s) == 0);
        check(poll(&phone, 1, -1) == 1);
        seen = (struct seen){ 0 };
        n = profile_answer(&s, 0, take, &seen);
        check(n >= 0);
    } while (n > 0);
    profile_end(&s);
    end_of(child);
    ok("the lack of data is reported in time, also by poll");
}

int main(void)
{
    whole_records_in_order();
    stacks_as_requested();
    wrong_requests();
    no_data_is_reported();
    return 0;
}
