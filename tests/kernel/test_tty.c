// The terminal layer: line editing, echo, signals, hang-up, random input.

#include "kernel/task/signal.h"
#include "kernel/task/task.h"
#include "tests/kernel/tty_helpers.h"

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
    // An EOF right after the last byte that fits belongs to that read.
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

// The signal that a typed character stands for.
static int signal_of(u8 c)
{
    u32 flags = spin_lock_irq(&tty->lock);
    int sig = ldisc_input(tty, c);

    spin_unlock_irq(&tty->lock, flags);
    return sig;
}

KERNEL_TEST(tty_signal_characters)
{
    if (!begin())
        return;
    type("partial");
    expect(signal_of(3) == SIGINT);
    expect(signal_of(034) == SIGQUIT);
    expect(signal_of(032) == SIGTSTP);
    type("\n");
    expect(reads("\n")); // the signal flushed the input
    tty->termios.lflag |= NOFLSH;
    type("kept");
    expect(signal_of(3) == SIGINT);
    type("\n");
    expect(reads("kept\n"));
    tty->termios.lflag &= ~ISIG;
    expect(signal_of(3) == 0);
    tty->termios.lflag |= ISIG;
    tty->termios.cc[VINTR] = 0; // disabled
    expect(signal_of(0) == 0);
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

KERNEL_TEST(tty_hang_up)
{
    char buf[8];

    if (!begin())
        return;
    file.flags = O_RDWR;
    tty->session = 4000000;   // no such task: no signal
    tty_disassociate(tty, 1); // not the owner: no effect
    expect(tty->hangups == 0);
    tty_disassociate(tty, 4000000);
    expect(tty->session == 0 && tty->hangups == 1);
    expect(get(buf, sizeof(buf)) == 0);
    expect(say("x", 1) == -EIO);
    expect(file.ops->poll(&file, NULL) & POLLHUP);
    expect(file.ops->ioctl(&file, 0x5401, 0) == -EIO);
    end();
}

static void resume_output(void)
{
    u32 flags = spin_lock_irq(&tty->lock);

    tty_output_stop(tty, false);
    spin_unlock_irq(&tty->lock, flags);
}

// Random characters in random modes: the counters stay consistent, nothing
// hangs.
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
            resume_output();
        shown_len = 0;
    }
    expect(tty->in_head - tty->in_tail <= TTY_INPUT_SIZE);
    expect(tty->in_line - tty->in_tail <= tty->in_head - tty->in_tail);
    expect(tty->out_head - tty->out_tail <= TTY_OUTPUT_SIZE);
    end();
}
