// The line discipline: processes characters between a terminal's line and the
// programs that read and write it (termios(3)).
//
// Everything here runs with the terminal's lock held and interrupts off, input
// in the driver's interrupt: nothing sleeps, and characters for which there is
// no room are dropped and counted. Writers leave room for echo in the output
// ring.

#include "kernel/base/errors.h"
#include "kernel/fs/tty_private.h"
#include "kernel/task/signal.h"
#include "lib/string.h"

#define ECHO_RESERVE 512u   // room in the output ring that writers leave
#define THROTTLE_BELOW 256u // free places in the input ring

ERROR_COUNTER(input_lost, "terminal input, lost",
              "input buffer full, as no program reads it");

static const u8 default_cc[NCCS] = {
    [VINTR] = 'C' & 31,    [VQUIT] = '\\' & 31,   [VERASE] = 0177,
    [VKILL] = 'U' & 31,    [VEOF] = 'D' & 31,     [VMIN] = 1,
    [VSTART] = 'Q' & 31,   [VSTOP] = 'S' & 31,    [VSUSP] = 'Z' & 31,
    [VREPRINT] = 'R' & 31, [VDISCARD] = 'O' & 31, [VWERASE] = 'W' & 31,
    [VLNEXT] = 'V' & 31,
};

void ldisc_init(struct tty *t)
{
    t->termios = (struct termios_k){
        .iflag = ICRNL | IXON,
        .oflag = OPOST | ONLCR,
        .cflag = B38400 | CS8 | CREAD | HUPCL,
        .lflag =
            ISIG | ICANON | ECHO | ECHOE | ECHOK | ECHOCTL | ECHOKE | IEXTEN,
    };
    memcpy(t->termios.cc, default_cc, sizeof(default_cc));
}

// A control character that is disabled is 0 and matches no character.
static bool is_cc(const struct tty *t, u8 c, u32 index)
{
    return c != 0 && c == t->termios.cc[index];
}

// --- echo -------------------------------------------------------------------

static bool shown_as_two(const struct tty *t, u8 c)
{
    return (t->termios.lflag & ECHOCTL) && tty_is_control(c) && c != '\t' &&
           c != '\n';
}

static void echo(struct tty *t, u8 c)
{
    spin_assert_held(&t->lock);
    if (shown_as_two(t, c)) {
        tty_echo(t, '^');
        c ^= 0100;
    }
    tty_echo(t, c);
}

// The column after the edited line's characters up to `end`.
static u32 column_at(const struct tty *t, u32 end)
{
    u32 column = t->line_column;
    for (u32 i = t->in_line; i != end; i++) {
        u8 c = t->in[i % TTY_INPUT_SIZE];
        if (c == '\t')
            column += TTY_TAB_WIDTH - column % TTY_TAB_WIDTH;
        else if (shown_as_two(t, c))
            column += 2;
        else if (!tty_is_control(c) && !tty_continues_utf8(t, c))
            column++;
    }
    return column;
}

// --- the input ring ---------------------------------------------------------

static u32 input_used(const struct tty *t)
{
    return t->in_head - t->in_tail;
}

// Adds an entry. The last place is reserved for a line end. False: no room.
static bool put_input(struct tty *t, u16 entry)
{
    spin_assert_held(&t->lock);
    bool canonical = t->termios.lflag & ICANON;
    u32 room = TTY_INPUT_SIZE - input_used(t);
    bool ends = entry & (INPUT_LINE_END | INPUT_EOF);

    if (room < (canonical && !ends ? 2u : 1u)) {
        t->input_lost++;
        error_count(&input_lost);
        if (canonical && (t->termios.iflag & IMAXBEL))
            tty_echo(t, '\a');
        return false;
    }
    t->in[t->in_head++ % TTY_INPUT_SIZE] = entry;
    if (!canonical || ends)
        t->in_line = t->in_head;
    return true;
}

void ldisc_throttle(struct tty *t)
{
    spin_assert_held(&t->lock);
    bool full = TTY_INPUT_SIZE - input_used(t) < THROTTLE_BELOW;
    bool roomy = input_used(t) < TTY_INPUT_SIZE / 4;

    // A full ring without a complete line must not be throttled: it is not
    // readable before the line ends.
    if (!t->driver->throttle)
        return;
    if (!t->throttled && full && ldisc_readable(t, 1)) {
        t->throttled = true;
        t->driver->throttle(t->driver, true);
    } else if (t->throttled && (roomy || !ldisc_readable(t, 1))) {
        t->throttled = false;
        t->driver->throttle(t->driver, false);
    }
}

void ldisc_flush_input(struct tty *t)
{
    spin_assert_held(&t->lock);
    t->in_tail = t->in_line = t->in_head;
    t->literal_next = false;
    ldisc_throttle(t);
}

u32 ldisc_readable_count(const struct tty *t)
{
    u32 count = 0;
    for (u32 i = t->in_tail; i != t->in_line; i++)
        count += !(t->in[i % TTY_INPUT_SIZE] & INPUT_EOF);
    return count;
}

size_t ldisc_take(struct tty *t, char *buf, size_t n, bool *ended)
{
    spin_assert_held(&t->lock);
    bool canonical = t->termios.lflag & ICANON;
    size_t count = 0;

    *ended = false;
    while (t->in_tail != t->in_line && !*ended) {
        u16 entry = t->in[t->in_tail % TTY_INPUT_SIZE];
        // An end of file directly after the last byte that fits is consumed
        // with it, or the next read would see an end of file that is not its
        // own.
        if (entry & INPUT_EOF) {
            *ended = canonical;
            t->in_tail++;
            continue;
        }
        if (count == n)
            break;
        buf[count++] = entry;
        t->in_tail++;
        *ended = canonical && (entry & INPUT_LINE_END);
    }
    ldisc_throttle(t);
    return count;
}

void ldisc_modes_changed(struct tty *t, const struct termios_k *old)
{
    spin_assert_held(&t->lock);
    const struct termios_k *new = &t->termios;

    // Characters typed in the other mode count as one line.
    if ((old->lflag ^ new->lflag) & ICANON) {
        if (new->lflag & ICANON) {
            for (u32 i = t->in_tail; i != t->in_head; i++)
                t->in[i % TTY_INPUT_SIZE] &= ~INPUT_LINE_END;
            if (t->in_head != t->in_tail)
                t->in[(t->in_head - 1) % TTY_INPUT_SIZE] |= INPUT_LINE_END;
        }
        t->in_line = t->in_head;
        t->literal_next = false;
    }
    if ((old->iflag & IXON) && !(new->iflag &IXON))
        tty_output_stop(t, false);
    ldisc_throttle(t);
    waitq_wake_all(&t->read_wait);
}

// --- canonical editing ------------------------------------------------------

// Erases the edited line back to `head`, on the screen too.
static void erase_back_to(struct tty *t, u32 head)
{
    spin_assert_held(&t->lock);
    u32 wipe = column_at(t, t->in_head) - column_at(t, head);

    t->in_head = head;
    while (wipe-- > 0) {
        tty_echo(t, '\b');
        tty_echo(t, ' ');
        tty_echo(t, '\b');
    }
}

static u8 last_before(const struct tty *t, u32 position)
{
    return t->in[(position - 1) % TTY_INPUT_SIZE];
}

static u32 before_character(const struct tty *t)
{
    u32 head = t->in_head - 1;
    while (head != t->in_line &&
           tty_continues_utf8(t, t->in[head % TTY_INPUT_SIZE]))
        head--;
    return head;
}

static bool is_word(u8 c)
{
    return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') ||
           c == '_' || c >= 0x80;
}

static u32 before_word(const struct tty *t)
{
    u32 head = t->in_head;
    while (head != t->in_line && !is_word(last_before(t, head)))
        head--;
    while (head != t->in_line && is_word(last_before(t, head)))
        head--;
    return head;
}

static void erase(struct tty *t, u8 c, u32 head)
{
    spin_assert_held(&t->lock);
    u32 modes = t->termios.lflag;

    if ((modes & ECHO) && (modes & ECHOE)) {
        erase_back_to(t, head);
        return;
    }
    t->in_head = head;
    if (modes & ECHO)
        echo(t, c);
}

static void kill_line(struct tty *t, u8 c)
{
    spin_assert_held(&t->lock);
    const u32 visibly = ECHO | ECHOE | ECHOK | ECHOKE;
    u32 modes = t->termios.lflag;

    if ((modes & visibly) == visibly) {
        erase_back_to(t, t->in_line);
        return;
    }
    t->in_head = t->in_line;
    if (!(modes & ECHO))
        return;
    echo(t, c);
    if (modes & ECHOK)
        tty_echo(t, '\n');
}

static void reprint(struct tty *t, u8 c)
{
    spin_assert_held(&t->lock);
    echo(t, c);
    tty_echo(t, '\n');
    t->line_column = t->column;
    for (u32 i = t->in_line; i != t->in_head; i++)
        echo(t, t->in[i % TTY_INPUT_SIZE]);
}

// Characters that edit the line. False: `c` is none of them.
static bool edit(struct tty *t, u8 c)
{
    spin_assert_held(&t->lock);
    u32 modes = t->termios.lflag;
    bool extended = modes & IEXTEN;

    if (is_cc(t, c, VERASE)) {
        if (t->in_head != t->in_line)
            erase(t, c, before_character(t));
    } else if (extended && is_cc(t, c, VWERASE)) {
        if (t->in_head != t->in_line)
            erase(t, c, before_word(t));
    } else if (is_cc(t, c, VKILL)) {
        kill_line(t, c);
    } else if (extended && is_cc(t, c, VLNEXT)) {
        t->literal_next = true;
        if ((modes & ECHO) && (modes & ECHOCTL)) {
            tty_echo(t, '^');
            tty_echo(t, '\b');
        }
    } else if (extended && (modes & ECHO) && is_cc(t, c, VREPRINT)) {
        reprint(t, c);
    } else {
        return false;
    }
    return true;
}

// --- input ------------------------------------------------------------------

static void insert(struct tty *t, u8 c, u16 marks)
{
    spin_assert_held(&t->lock);
    bool first = t->in_head == t->in_line;
    u32 column = t->column;

    if (put_input(t, c | marks) && (t->termios.lflag & ECHO)) {
        if (first)
            t->line_column = column;
        echo(t, c);
    }
}

// Characters that end the line. False: `c` is none of them.
static bool end_line(struct tty *t, u8 c)
{
    spin_assert_held(&t->lock);
    u32 modes = t->termios.lflag;

    if (c == '\n') {
        if (put_input(t, c | INPUT_LINE_END) && (modes & (ECHO | ECHONL)))
            tty_echo(t, c);
    } else if (is_cc(t, c, VEOF)) {
        put_input(t, INPUT_EOF);
    } else if (is_cc(t, c, VEOL) || ((modes & IEXTEN) && is_cc(t, c, VEOL2))) {
        insert(t, c, INPUT_LINE_END);
    } else {
        return false;
    }
    return true;
}

static int signal_of(const struct tty *t, u8 c)
{
    if (!(t->termios.lflag & ISIG))
        return 0;
    if (is_cc(t, c, VINTR))
        return SIGINT;
    if (is_cc(t, c, VQUIT))
        return SIGQUIT;
    if (is_cc(t, c, VSUSP))
        return SIGTSTP;
    return 0;
}

static void begin_signal(struct tty *t, u8 c)
{
    spin_assert_held(&t->lock);
    if (!(t->termios.lflag & NOFLSH)) {
        ldisc_flush_input(t);
        tty_output_flush(t);
    }
    if (t->termios.iflag & IXON)
        tty_output_stop(t, false);
    if (t->termios.lflag & ECHO)
        echo(t, c);
}

// ^S and ^Q. False: `c` needs further processing.
static bool flow_control(struct tty *t, u8 c)
{
    spin_assert_held(&t->lock);
    if (!(t->termios.iflag & IXON))
        return false;
    if (is_cc(t, c, VSTART) || is_cc(t, c, VSTOP)) {
        tty_output_stop(t, !is_cc(t, c, VSTART));
        return true;
    }
    if (t->stopped && (t->termios.iflag & IXANY))
        tty_output_stop(t, false);
    return false;
}

int ldisc_input(struct tty *t, u8 c)
{
    spin_assert_held(&t->lock);
    u32 modes = t->termios.iflag;
    int sig;

    if (modes & ISTRIP)
        c &= 0x7f;
    if (t->literal_next) {
        t->literal_next = false;
        insert(t, c, 0);
        return 0;
    }
    if (flow_control(t, c))
        return 0;
    sig = signal_of(t, c);
    if (sig != 0) {
        begin_signal(t, c);
        return sig;
    }
    if (c == '\r') {
        if (modes & IGNCR)
            return 0;
        if (modes & ICRNL)
            c = '\n';
    } else if (c == '\n' && (modes & INLCR)) {
        c = '\r';
    }
    if ((t->termios.lflag & ICANON) && (edit(t, c) || end_line(t, c)))
        return 0;
    insert(t, c, 0);
    return 0;
}
