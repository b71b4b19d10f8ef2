// The terminal layer over a driver that keeps what it is given: line editing,
// echo, output modes, reads in all modes, flow control, overflow.

#include "kernel/errno.h"
#include "kernel/exec/signal.h"
#include "kernel/fs/tty_private.h"
#include "kernel/init/test.h"
#include "kernel/mm/heap.h"
#include "kernel/sched/thread.h"
#include "lib/string.h"

#include <arch/clock.h>

#define ALL ~0u

// A terminal under test: what it showed, and how much it takes.
static struct tty_driver driver;
static struct tty *tty;
static struct file file;
static char shown[16384];
static size_t shown_len, driver_room;
static u32 throttles;

static size_t take_output(struct tty_driver *d UNUSED, const char *text,
                          size_t n)
{
    size_t taken = MIN(MIN(n, driver_room), sizeof(shown) - shown_len);

    memcpy(shown + shown_len, text, taken);
    shown_len += taken;
    if (driver_room != ALL)
        driver_room -= taken;
    return taken;
}

static void note_throttle(struct tty_driver *d UNUSED, bool on)
{
    throttles += on ? 1 : 0x100;
}

static bool begin(void)
{
    driver = (struct tty_driver){ .name = "test",
                                  .rows = 25,
                                  .cols = 80,
                                  .write = take_output,
                                  .throttle = note_throttle };
    shown_len = throttles = 0;
    driver_room = ALL;
    tty = tty_create(&driver);
    expect(tty != NULL);
    if (tty == NULL)
        return false;
    memset(&file, 0, sizeof(file));
    file.flags = O_RDWR | O_NONBLOCK;
    if (tty_attach_file(tty, &file, false) == 0)
        return true;
    expect(!"room for an open file");
    kfree(tty);
    return false;
}

static void end(void)
{
    file.ops->release(&file);
    kfree(tty);
}

static void type(const char *text)
{
    tty_input(tty, text, strlen(text));
}

static int get(char *buf, size_t n)
{
    struct iovec_k part;
    struct io io;
    u64 pos = 0;

    io_init(&io, &part, (u32)buf, n, true);
    return file.ops->read(&file, &io, &pos);
}

static int say(const char *text, size_t n)
{
    struct iovec_k part;
    struct io io;
    u64 pos = 0;

    io_init(&io, &part, (u32)text, n, true);
    return file.ops->write(&file, &io, &pos);
}

// A read gives just this text; NULL: there is nothing to read.
static bool reads(const char *text)
{
    char buf[256];
    int n = get(buf, sizeof(buf));

    if (text == NULL)
        return n == -EAGAIN;
    return n == (int)strlen(text) && memcmp(buf, text, n) == 0;
}

static bool shows(const char *text)
{
    bool same =
        shown_len == strlen(text) && memcmp(shown, text, shown_len) == 0;

    shown_len = 0;
    return same;
}

static void set_modes(u32 iflag, u32 oflag, u32 lflag)
{
    u32 flags = spin_lock_irq(&tty->lock);
    struct termios_k old = tty->termios;

    tty->termios.iflag = iflag;
    tty->termios.oflag = oflag;
    tty->termios.lflag = lflag;
    ldisc_modes_changed(tty, &old);
    spin_unlock_irq(&tty->lock, flags);
}

static void set_raw(u8 minimum, u8 time)
{
    tty->termios.cc[VMIN] = minimum;
    tty->termios.cc[VTIME] = time;
    set_modes(0, 0, 0);
}

KERNEL_TEST(tty_canonical_lines)
{
    if (!begin())
        return;
    type("one");
    expect(reads(NULL));
    type("\rtwo\n");
    expect(shows("one\r\ntwo\r\n"));
    expect(reads("one\n"));
    expect(reads("two\n"));
    expect(reads(NULL));
    end();
}

KERNEL_TEST(tty_short_reads_of_a_line)
{
    char buf[2];

    if (!begin())
        return;
    type("abc\nd\n");
    expect(get(buf, 2) == 2 && buf[0] == 'a' && buf[1] == 'b');
    expect(get(buf, 2) == 2 && buf[0] == 'c' && buf[1] == '\n');
    expect(get(buf, 2) == 2 && buf[0] == 'd');
    expect(reads(NULL));
    end();
}

KERNEL_TEST(tty_end_of_file)
{
    char buf[3];

    if (!begin())
        return;
    type("\4");
    expect(get(buf, sizeof(buf)) == 0);
    expect(reads(NULL));
    type("ab\4c\n");
    expect(reads("ab"));
    expect(reads("c\n"));
    // An end right behind the last byte that fits belongs to that read.
    type("xyz\4");
    expect(get(buf, sizeof(buf)) == 3);
    expect(reads(NULL));
    end();
}

KERNEL_TEST(tty_erases)
{
    if (!begin())
        return;
    type("\177ab\177c\n");
    expect(shows("ab\b \bc\r\n"));
    expect(reads("ac\n"));
    type("\1\177x\n"); // shown as ^A
    expect(shows("^A\b \b\b \bx\r\n"));
    expect(reads("x\n"));
    type("lost\025kept\n");
    expect(reads("kept\n"));
    type("two words  \027.\n");
    expect(reads("two .\n"));
    end();
}

KERNEL_TEST(tty_erases_tabs_and_utf8)
{
    if (!begin())
        return;
    type("a\t\177");
    expect(tty->column == 1);
    type("\n");
    expect(reads("a\n"));
    tty->termios.iflag |= IUTF8;
    type("\303\244\342\202\254\177\177b\n");
    expect(reads("b\n"));
    end();
}

KERNEL_TEST(tty_literal_next_and_reprint)
{
    if (!begin())
        return;
    type("\026\3\026\177\n");
    expect(reads("\3\177\n"));
    shown_len = 0;
    type("ab\022");
    expect(shows("ab^R\r\nab"));
    type("\n");
    expect(reads("ab\n"));
    end();
}

KERNEL_TEST(tty_signal_characters)
{
    if (!begin())
        return;
    type("partial");
    expect(ldisc_input(tty, 3) == SIGINT);
    expect(ldisc_input(tty, 034) == SIGQUIT);
    expect(ldisc_input(tty, 032) == SIGTSTP);
    type("\n");
    expect(reads("\n")); // what was typed before is gone
    tty->termios.lflag |= NOFLSH;
    type("kept");
    expect(ldisc_input(tty, 3) == SIGINT);
    type("\n");
    expect(reads("kept\n"));
    tty->termios.lflag &= ~ISIG;
    expect(ldisc_input(tty, 3) == 0);
    tty->termios.lflag |= ISIG;
    tty->termios.cc[VINTR] = 0; // switched off
    expect(ldisc_input(tty, 0) == 0);
    end();
}

KERNEL_TEST(tty_echo_modes)
{
    if (!begin())
        return;
    tty->termios.lflag &= ~ECHO;
    type("secret\n");
    expect(shows(""));
    tty->termios.lflag |= ECHONL;
    type("secret\n");
    expect(shows("\r\n"));
    end();
}

KERNEL_TEST(tty_input_mapping)
{
    char buf[4];

    if (!begin())
        return;
    set_raw(1, 0);
    tty->termios.iflag = INLCR | ISTRIP;
    type("\n\301");
    expect(get(buf, 4) == 2 && buf[0] == '\r' && buf[1] == 'A');
    tty->termios.iflag = IGNCR;
    type("\r\n");
    expect(get(buf, 4) == 1 && buf[0] == '\n');
    end();
}

KERNEL_TEST(tty_output_modes)
{
    if (!begin())
        return;
    expect(say("a\nb", 3) == 3);
    expect(shows("a\r\nb"));
    set_modes(0, OPOST | XTABS, 0);
    expect(say("\tc", 2) == 2); // behind the b
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
    deadline = clock_now_ns() + 5 * NSEC_PER_SEC;
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
    type("x");
    start = clock_now_ns();
    expect(reads("x"));
    expect(clock_now_ns() - start < 100 * NSEC_PER_MSEC);
    end();
}

static void type_slowly(void *arg UNUSED)
{
    thread_sleep_until(clock_now_ns() + 30 * NSEC_PER_MSEC,
                       WAIT_UNINTERRUPTIBLE);
    type("a");
    thread_sleep_until(clock_now_ns() + 30 * NSEC_PER_MSEC,
                       WAIT_UNINTERRUPTIBLE);
    type("b");
}

KERNEL_TEST(tty_raw_minimum)
{
    if (!begin())
        return;
    file.flags = O_RDWR;
    set_raw(2, 0);
    expect(kthread_create("typist", type_slowly, NULL, NULL) == 0);
    expect(reads("ab"));
    file.flags = O_RDWR | O_NONBLOCK;
    type("x");
    expect(!(file.ops->poll(&file, NULL) & POLLIN));
    expect(reads("x"));
    end();
}

KERNEL_TEST(tty_raw_minimum_and_time_between)
{
    u64 start;

    if (!begin())
        return;
    file.flags = O_RDWR;
    set_raw(5, 1);
    expect(kthread_create("typist", type_slowly, NULL, NULL) == 0);
    start = clock_now_ns();
    expect(reads("ab"));
    expect(clock_now_ns() - start >= 160 * NSEC_PER_MSEC);
    end();
}

KERNEL_TEST(tty_mode_switch_keeps_input)
{
    if (!begin())
        return;
    type("half a line");
    set_raw(1, 0);
    expect(reads("half a line"));
    type("typed raw");
    set_modes(ICRNL, 0, ICANON);
    expect(reads("typed raw"));
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
    type("\n"); // its place was kept
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

KERNEL_TEST(tty_hang_up)
{
    char buf[8];

    if (!begin())
        return;
    file.flags = O_RDWR;
    tty->session = 4000000;   // no such task: nobody is signalled
    tty_disassociate(tty, 1); // not the owner: nothing happens
    expect(tty->hangups == 0);
    tty_disassociate(tty, 4000000);
    expect(tty->session == 0 && tty->hangups == 1);
    expect(get(buf, sizeof(buf)) == 0);
    expect(say("x", 1) == -EIO);
    expect(file.ops->poll(&file, NULL) & POLLHUP);
    expect(file.ops->ioctl(&file, 0x5401, 0) == -EIO);
    end();
}

// Random characters in random modes: counters stay in order, nothing hangs.
KERNEL_TEST(tty_survives_noise)
{
    if (!begin())
        return;
    for (u32 i = 0; i < 20000; i++) {
        char c = test_random(), buf[64];

        tty_input(tty, &c, 1);
        if (i % 16 == 0)
            (void)get(buf, 1 + test_random() % sizeof(buf));
        if (i % 64 == 0)
            set_modes(test_random() & 0xffff, test_random() & 0xffff,
                      test_random() & (ICANON | ECHO | ECHOE | ECHOK | ECHOCTL |
                                       ECHOKE | IEXTEN));
        if (i % 64 == 1)
            tty_output_stop(tty, false);
        shown_len = 0;
    }
    expect(tty->in_head - tty->in_tail <= TTY_INPUT_SIZE);
    expect(tty->in_line - tty->in_tail <= tty->in_head - tty->in_tail);
    expect(tty->out_head - tty->out_tail <= TTY_OUTPUT_SIZE);
    end();
}
