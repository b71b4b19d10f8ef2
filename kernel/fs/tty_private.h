// Shared by the parts of the terminal layer: tty.c (open files), tty_ioctl.c,
// tty_devices.c (the list of terminals), tty_ldisc.c (line discipline),
// tty_output.c (output) and tty_jobs.c (job control).
#pragma once

#include "kernel/fs/devfs.h"
#include "kernel/fs/tty.h"
#include "kernel/sync/waitq.h"

// struct termios as the kernel of Linux/i386 sees it (asm/termbits.h).
enum {
    VINTR,
    VQUIT,
    VERASE,
    VKILL,
    VEOF,
    VTIME,
    VMIN,
    VSWTC,
    VSTART,
    VSTOP,
    VSUSP,
    VEOL,
    VREPRINT,
    VDISCARD,
    VWERASE,
    VLNEXT,
    VEOL2,
    NCCS = 19
};

struct termios_k {
    u32 iflag, oflag, cflag, lflag;
    u8 line;
    u8 cc[NCCS];
};
_Static_assert(sizeof(struct termios_k) == 36, "struct termios of the ABI");

#define ISTRIP 0000040u
#define INLCR 0000100u
#define IGNCR 0000200u
#define ICRNL 0000400u
#define IXON 0002000u
#define IXANY 0004000u
#define IMAXBEL 0020000u
#define IUTF8 0040000u

#define OPOST 0000001u
#define ONLCR 0000004u
#define OCRNL 0000010u
#define ONOCR 0000020u
#define ONLRET 0000040u
#define TABDLY 0014000u
#define XTABS 0014000u

#define B38400 0000017u
#define CS8 0000060u
#define CREAD 0000200u
#define HUPCL 0002000u

#define ISIG 0000001u
#define ICANON 0000002u
#define ECHO 0000010u
#define ECHOE 0000020u
#define ECHOK 0000040u
#define ECHONL 0000100u
#define NOFLSH 0000200u
#define TOSTOP 0000400u
#define ECHOCTL 0001000u
#define ECHOKE 0004000u
#define IEXTEN 0100000u

struct winsize_k {
    u16 rows, cols, xpixel, ypixel;
};

#define TTY_INPUT_SIZE 4096u // characters; the longest line has one less
#define TTY_OUTPUT_SIZE 4096u

// An entry of the input ring: a character, with flags for readers.
#define INPUT_LINE_END 0x100u // a canonical read ends after it
#define INPUT_EOF 0x200u      // ends a canonical read and is not delivered

// `lock` guards everything below it. session and pgrp are changed with
// tasks_lock held too (tasks_lock first), so that either lock allows reading.
// A terminal is made once and never freed.
struct tty {
    struct tty_driver *driver;
    struct char_device device;
    struct waitq read_wait, write_wait;

    struct spinlock lock; // interrupt-disabling
    struct termios_k termios;
    struct winsize_k size;
    u32 session, pgrp;         // of the controlling session, 0: none; marked
    u32 hangups;               // marked: files older than the last are dead
    bool stopped;              // output is stopped by ^S
    bool throttled;            // the driver was asked to take no more input
    bool literal_next;         // the next character is data (VLNEXT)
    u32 column;                // of the cursor, as far as known
    u32 line_column;           // where the edited line begins
    u64 input_lost, echo_lost; // characters dropped for lack of room

    // Rings, indexed modulo their size by free-running counters. [in_tail,
    // in_line) is complete lines, [in_line, in_head) is being edited; without
    // ICANON in_line == in_head.
    u32 in_head, in_line, in_tail;
    u32 out_head, out_tail;
    u16 in[TTY_INPUT_SIZE];
    u8 out[TTY_OUTPUT_SIZE];
};

// --- tty_ldisc.c: with tty->lock held ---

void ldisc_init(struct tty *t);
// Processes one character from the line. Returns the signal that it generates
// (the caller sends it to the foreground group, without the lock) or 0.
int ldisc_input(struct tty *t, u8 c);
// Moves up to n characters to a reader. *ended: a line ended there.
size_t ldisc_take(struct tty *t, char *buf, size_t n, bool *ended);
// The modes have changed; *old are the previous ones.
void ldisc_modes_changed(struct tty *t, const struct termios_k *old);
void ldisc_flush_input(struct tty *t);
// Characters that a read would return now (FIONREAD).
u32 ldisc_readable_count(const struct tty *t);
// Throttles the driver when the ring is nearly full, resumes it when there is
// room.
void ldisc_throttle(struct tty *t);
// The readers' condition; sleepers are woken after each change and check again.
static inline bool ldisc_readable(const struct tty *t, u32 minimum)
{
    if (t->termios.lflag & ICANON)
        return t->in_line != t->in_tail;
    return t->in_head - t->in_tail >= minimum;
}

// --- tty_output.c: with tty->lock held ---

#define TTY_TAB_WIDTH 8u

// Adds text to the output ring, processed by the output modes; returns how many
// characters of it there was room for.
size_t tty_output(struct tty *t, const char *text, size_t n);
// The same for one character that a program did not write.
void tty_echo(struct tty *t, u8 c);
// Passes output from the ring to the driver; wakes writers.
void tty_output_push(struct tty *t);
// Stops or resumes output.
void tty_output_stop(struct tty *t, bool stop);
void tty_output_flush(struct tty *t);
// Whether there is room for a writer.
bool tty_writable(const struct tty *t);

static inline bool tty_is_control(u8 c)
{
    return c < ' ' || c == 0177;
}

static inline bool tty_continues_utf8(const struct tty *t, u8 c)
{
    return (t->termios.iflag & IUTF8) && (c & 0xc0) == 0x80;
}

// --- tty_jobs.c ---

// The current task's controlling terminal, or NULL.
struct tty *jobs_controlling_tty(void);
// Makes it the controlling terminal of the current task, a session leader
// without one. `steal`: even if another session owns it. 0, -EPERM.
int jobs_acquire(struct tty *t, bool steal);
int jobs_release(struct tty *t); // TIOCNOTTY; -ENOTTY
// Whether current may read (SIGTTIN), write or change modes (SIGTTOU): 0, -EIO
// or -ERESTARTSYS after the signal was sent.
int jobs_check(struct tty *t, int sig);
int jobs_get_pgrp(struct tty *t, u32 *pgrp);
int jobs_set_pgrp(struct tty *t, s32 pgrp);
int jobs_get_session(struct tty *t, u32 *sid);
void jobs_signal(struct tty *t, int sig); // to the foreground group

// --- tty.c ---

// Attaches `file` to the terminal (sets ops and data). 0, -ENOMEM.
int tty_attach_file(struct tty *t, struct file *file, bool survives_hangup);
// The open file's terminal; NULL if it was hung up.
struct tty *tty_of_file(struct file *f);

// --- tty_ioctl.c ---

int tty_ioctl(struct file *f, u32 cmd, u32 arg);

// --- tty_devices.c ---

// A terminal over a driver, without a node (tests create their own). NULL: no
// memory.
struct tty *tty_create(struct tty_driver *d);
