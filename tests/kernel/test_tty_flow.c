// The terminal layer: output modes, reads in raw modes, flow control in both
// directions, overflow.

#include "kernel/sched/thread.h"
#include "tests/kernel/tty_helpers.h"

#include <arch/clock.h>

KERNEL_TEST(tty_output_modes)
{
    if (!begin())
        return;
    expect(say("a\nb", 3) == 3);
    expect(shows("a\r\nb"));
    set_modes(0, OPOST | XTABS, 0);
    expect(say("\tc", 2) == 2); // after the b
    expect(shows("       c"));
    set_modes(0, OPOST | OCRNL, 0);
    expect(say("\r", 1) == 1);
    expect(shows("\n"));
    set_modes(0, OPOST | ONOCR, 0);
    tty->column = 0;
    expect(say("\rd\r", 3) == 3);
    expect(shows("d\r"));
    set_modes(0, 0, 0);
    expect(say("\n\t", 2) == 2);
    expect(shows("\n\t"));
    end();
}

KERNEL_TEST(tty_output_waits_for_the_driver)
{
    static char text[2 * TTY_OUTPUT_SIZE];
    int first, rest;

    if (!begin())
        return;
    set_modes(0, 0, 0);
    for (u32 i = 0; i < sizeof(text); i++)
        text[i] = 'a' + i % 26;
    driver_room = 100;
    first = say(text, sizeof(text));
    expect(first >= 100 && (u32)first < sizeof(text));
    expect(shown_len == 100);
    expect(say(text, 1) == -EAGAIN);
    expect(!(file.ops->poll(&file, NULL) & POLLOUT));
    driver_room = ALL;
    tty_output_ready(tty);
    expect(shown_len == (size_t)first);
    expect(file.ops->poll(&file, NULL) & POLLOUT);
    rest = say(text + first, sizeof(text) - first);
    expect(first + rest == (int)sizeof(text));
    expect(memcmp(shown, text, sizeof(text)) == 0);
    end();
}

static void write_much(void *arg)
{
    static char text[2 * TTY_OUTPUT_SIZE];
    int *result = arg;

    memset(text, 'w', sizeof(text));
    WRITE_ONCE(*result, say(text, sizeof(text)));
}

KERNEL_TEST(tty_blocking_writer)
{
    static int result;
    u64 deadline;

    if (!begin())
        return;
    set_modes(0, 0, 0);
    file.flags = O_RDWR;
    driver_room = 10;
    result = 0;
    if (kthread_create("tty writer", write_much, &result, NULL) != 0) {
        expect(!"room for a thread");
        end();
        return;
    }
    thread_sleep_until(clock_now_ns() + 20 * NSEC_PER_MSEC,
                       WAIT_UNINTERRUPTIBLE);
    expect(READ_ONCE(result) == 0);
    deadline = clock_now_ns() + TEST_PATIENCE;
    while (READ_ONCE(result) == 0 && clock_now_ns() < deadline) {
        u32 flags = spin_lock_irq(&tty->lock);

        driver_room = 1000;
        tty_output_push(tty);
        spin_unlock_irq(&tty->lock, flags);
        thread_sleep_until(clock_now_ns() + NSEC_PER_MSEC,
                           WAIT_UNINTERRUPTIBLE);
    }
    expect(result == 2 * TTY_OUTPUT_SIZE);
    end();
}

KERNEL_TEST(tty_stops_and_goes_on)
{
    if (!begin())
        return;
    type("\023");
    expect(say("held", 4) == 4);
    expect(shows(""));
    type("\021");
    expect(shows("held"));
    type("\023");
    expect(say("held", 4) == 4);
    tty->termios.iflag |= IXANY;
    type("x");
    expect(shows("heldx"));
    end();
}

KERNEL_TEST(tty_raw_without_waiting)
{
    if (!begin())
        return;
    file.flags = O_RDWR;
    set_raw(0, 0);
    expect(reads(""));
    type("ab");
    expect(reads("ab"));
    end();
}

KERNEL_TEST(tty_raw_with_a_time_limit)
{
    u64 start;

    if (!begin())
        return;
    file.flags = O_RDWR;
    set_raw(0, 1);
    start = clock_now_ns();
    expect(reads(""));
    expect(clock_now_ns() - start >= 100 * NSEC_PER_MSEC);
    set_raw(0, 255); // no wait for input that is there
    type("x");
    start = clock_now_ns();
    expect(reads("x"));
    expect(clock_now_ns() - start < 25 * NSEC_PER_SEC);
    end();
}

static struct waitq typist_done = WAITQ_INIT(typist_done, "test typist");

// `between`: the longest possible time between the two characters; `second`: a
// time just before the second one. Valid when `done`.
struct typist {
    u64 between, second;
    bool done;
};

static void type_slowly(void *arg)
{
    struct typist *t = arg;
    u64 first;

    thread_sleep_until(clock_now_ns() + 30 * NSEC_PER_MSEC,
                       WAIT_UNINTERRUPTIBLE);
    first = clock_now_ns();
    type("a");
    thread_sleep_until(clock_now_ns() + 30 * NSEC_PER_MSEC,
                       WAIT_UNINTERRUPTIBLE);
    t->second = clock_now_ns();
    type("b");
    t->between = clock_now_ns() - first;
    __atomic_store_n(&t->done, true, __ATOMIC_RELEASE);
    waitq_wake_all(&typist_done);
}

static void start_typist(struct typist *t)
{
    *t = (struct typist){ .done = false };
    if (kthread_create("typist", type_slowly, t, NULL))
        panic("no memory for a test");
}

// After this the typist no longer uses the terminal.
static void wait_for_typist(struct typist *t)
{
    wait_event(&typist_done, __atomic_load_n(&t->done, __ATOMIC_ACQUIRE),
               WAIT_UNINTERRUPTIBLE, WAIT_FOREVER);
}

KERNEL_TEST(tty_raw_minimum)
{
    static struct typist typist;

    if (!begin())
        return;
    file.flags = O_RDWR;
    set_raw(2, 0);
    start_typist(&typist);
    expect(reads("ab"));
    wait_for_typist(&typist);
    file.flags = O_RDWR | O_NONBLOCK;
    type("x");
    expect(!(file.ops->poll(&file, NULL) & POLLIN));
    expect(reads("x"));
    end();
}

// Each character restarts the timer. (If the second one is late, the read
// returns the first alone: then the timeout had passed between them.)
KERNEL_TEST(tty_raw_minimum_and_time_between)
{
    static struct typist typist;
    char buf[5];
    int n = 0;

    if (!begin())
        return;
    file.flags = O_RDWR;
    set_raw(5, 1);
    for (u32 i = 0; i < 100 && n < 2; i++) {
        start_typist(&typist);
        n = get(buf, sizeof(buf));
        u64 now = clock_now_ns();
        wait_for_typist(&typist);
        expect(buf[0] == 'a');
        if (n == 1)
            expect(typist.between >= 100 * NSEC_PER_MSEC && reads("b"));
        else
            expect(now - typist.second >= 100 * NSEC_PER_MSEC);
    }
    expect(n == 2 && buf[1] == 'b');
    end();
}

KERNEL_TEST(tty_overflow_is_counted)
{
    u32 total = 0;
    char buf[1000];
    int n;

    if (!begin())
        return;
    tty->termios.lflag &= ~ECHO;
    for (u32 i = 0; i < TTY_INPUT_SIZE + 10; i++)
        type("x");
    expect(tty->input_lost == 11);
    type("\n"); // one place is reserved for the newline
    expect(tty->input_lost == 11);
    while ((n = get(buf, sizeof(buf))) > 0)
        total += n;
    expect(total == TTY_INPUT_SIZE);
    expect(ldisc_readable_count(tty) == 0);
    end();
}

KERNEL_TEST(tty_throttles_the_driver)
{
    char buf[TTY_INPUT_SIZE / 4];
    u32 reads_done = 0;

    if (!begin())
        return;
    tty->termios.lflag &= ~ECHO;
    type("a line\n");
    for (u32 i = 0; i < TTY_INPUT_SIZE - 100; i++)
        type("x");
    expect(throttles == 1);
    set_raw(1, 0);
    while (throttles < 0x100 && ++reads_done < 5)
        expect(get(buf, sizeof(buf)) > 0);
    expect(throttles == 0x101);
    end();
}
