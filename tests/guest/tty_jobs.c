// Terminals: modes, line editing, timed reads, job control, controlling
// terminals, hang-up. On Strobe the screen's terminal is used, with input faked
// by TIOCSTI; on Linux a pseudo-terminal.
#include "test.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>

static int master = -1; // Linux: the other side of the pseudo-terminal
static char path[64] = "/dev/tty0";

static void make_terminal(void)
{
    master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0)
        return;
    check(grantpt(master) == 0 && unlockpt(master) == 0);
    check(ptsname_r(master, path, sizeof(path)) == 0);
}

static void type_text(int tty, const char *text)
{
    if (master >= 0) {
        check(write(master, text, strlen(text)) == (ssize_t)strlen(text));
        sleep_ms(20);
        return;
    }
    for (; *text != '\0'; text++)
        check(ioctl(tty, TIOCSTI, text) == 0);
}

// Runs fn as the leader of a session with the terminal.
static void in_session(void (*fn)(int tty))
{
    int status;
    pid_t pid = fork();

    check(pid >= 0);
    if (pid == 0) {
        int tty;

        check(setsid() == getpid());
        tty = open(path, O_RDWR | O_NOCTTY);
        check(tty >= 0);
        check(ioctl(tty, TIOCSCTTY, 0) == 0);
        fn(tty);
        _exit(0);
    }
    check(waitpid(pid, &status, 0) == pid);
    check(exited_with(status, 0));
}

static void set_flags(int tty, tcflag_t set, tcflag_t clear)
{
    struct termios t;

    check(tcgetattr(tty, &t) == 0);
    t.c_lflag = (t.c_lflag | set) & ~clear;
    check(tcsetattr(tty, TCSANOW, &t) == 0);
}

static bool reads(int tty, const char *text)
{
    char buf[256];
    ssize_t n = read(tty, buf, sizeof(buf));

    return n == (ssize_t)strlen(text) && memcmp(buf, text, n) == 0;
}

// --- modes and lines --------------------------------------------------------

static void default_modes(int tty)
{
    struct termios t;

    check(isatty(tty) && !isatty(open("/dev/null", O_RDONLY)));
    check(tcgetattr(tty, &t) == 0);
    check((t.c_lflag & (ICANON | ECHO | ISIG)) == (ICANON | ECHO | ISIG));
    check(t.c_iflag & ICRNL);
    check((t.c_oflag & (OPOST | ONLCR)) == (OPOST | ONLCR));
    check(t.c_cc[VINTR] == 3 && t.c_cc[VEOF] == 4 && t.c_cc[VMIN] == 1);
    check_error(tcgetattr(open("/dev/null", O_RDONLY), &t), ENOTTY);
    check_error(ioctl(tty, TCGETS, 1), EFAULT);
    check_error(ioctl(tty, TCSETS, 1), EFAULT);
    check_error(ioctl(tty, 0x54ff, 0), ENOTTY);
    check_error(tcflush(tty, 77), EINVAL);
}

static void lines(int tty)
{
    int ready = 0;

    type_text(tty, "wrong\025worx\177d\r");
    check(ioctl(tty, FIONREAD, &ready) == 0 && ready == 5);
    check(reads(tty, "word\n"));
    type_text(tty, "ab\004");
    check(reads(tty, "ab"));
    type_text(tty, "\004");
    check(read(tty, &ready, 1) == 0);
    type_text(tty, "x\n");
    check_error(read(tty, (void *)1, 4), EFAULT);
}

static void flush_input(int tty)
{
    type_text(tty, "gone\n");
    check(tcflush(tty, TCIFLUSH) == 0);
    check(fcntl(tty, F_SETFL, O_NONBLOCK) == 0);
    check_error(read(tty, path, 1), EAGAIN);
    type_text(tty, "kept\n");
    check(reads(tty, "kept\n"));
}

static void set_raw(int tty, int minimum, int time)
{
    struct termios t;

    check(tcgetattr(tty, &t) == 0);
    cfmakeraw(&t);
    t.c_cc[VMIN] = minimum;
    t.c_cc[VTIME] = time;
    check(tcsetattr(tty, TCSAFLUSH, &t) == 0);
}

static void type_later(int tty, const char *text, unsigned ms)
{
    if (fork() != 0)
        return;
    sleep_ms(ms);
    type_text(tty, text);
    _exit(0);
}

static void raw_reads(int tty)
{
    uint64_t start;

    set_raw(tty, 0, 0);
    check(reads(tty, ""));
    set_raw(tty, 0, 2);
    start = now_ns();
    check(reads(tty, ""));
    check(now_ns() - start >= 200000000ull);
    set_raw(tty, 1, 0);
    type_later(tty, "\3", 50);
    check(reads(tty, "\3"));
    set_raw(tty, 3, 0);
    type_later(tty, "xyz", 50);
    check(reads(tty, "xyz"));
    set_raw(tty, 9, 1); // no time-out for the first byte
    start = now_ns();
    type_later(tty, "1", 150);
    check(reads(tty, "1"));
    check(now_ns() - start >= 250000000ull);
    type_text(tty, "few");
    start = now_ns();
    check(reads(tty, "few"));
    check(now_ns() - start >= 100000000ull);
}

static void polling(int tty)
{
    struct pollfd p = { .fd = tty, .events = POLLIN | POLLOUT };

    check(poll(&p, 1, 0) == 1 && p.revents == POLLOUT);
    p.events = POLLIN;
    check(poll(&p, 1, 50) == 0);
    type_later(tty, "x\n", 50);
    check(poll(&p, 1, 5000) == 1 && p.revents == POLLIN);
    check(reads(tty, "x\n"));
}

static volatile sig_atomic_t caught;

static void catch (int signal)
{
    caught = signal;
}

static void sizes(int tty)
{
    struct winsize size = { .ws_row = 33, .ws_col = 99 }, got;

    on_signal(SIGWINCH, catch, 0);
    check(ioctl(tty, TIOCSWINSZ, &size) == 0);
    check(caught == SIGWINCH);
    check(ioctl(tty, TIOCGWINSZ, &got) == 0);
    check(got.ws_row == 33 && got.ws_col == 99);
    caught = 0;
    check(ioctl(tty, TIOCSWINSZ, &size) == 0);
    check(caught == 0); // nothing changed
    size = (struct winsize){ 25, 80, 0, 0 };
    check(ioctl(tty, TIOCSWINSZ, &size) == 0);
}

// --- job control ------------------------------------------------------------

static void typed_signals(int tty)
{
    char c;

    on_signal(SIGINT, catch, 0);
    on_signal(SIGQUIT, catch, 0);
    on_signal(SIGTSTP, catch, 0);
    type_text(tty, "\003");
    check(caught == SIGINT);
    type_text(tty, "\034");
    check(caught == SIGQUIT);
    type_text(tty, "\032");
    check(caught == SIGTSTP);
    // Without SA_RESTART a read is interrupted; what was typed is flushed.
    type_later(tty, "half\003", 50);
    check_error(read(tty, &c, 1), EINTR);
    check(caught == SIGINT);
}

// Starts fn in a group of its own, in the background.
static pid_t in_background(void (*fn)(int tty), int tty)
{
    pid_t pid = fork();

    check(pid >= 0);
    if (pid == 0) {
        check(setpgid(0, 0) == 0);
        fn(tty);
        _exit(0);
    }
    setpgid(pid, pid);
    return pid;
}

static void check_stopped(pid_t pid, int signal)
{
    int status;

    check(waitpid(pid, &status, WUNTRACED) == pid);
    check(WIFSTOPPED(status) && WSTOPSIG(status) == signal);
}

static void check_ends_well(pid_t pid)
{
    int status;

    check(waitpid(pid, &status, 0) == pid);
    check(exited_with(status, 0));
}

static void read_a_line(int tty)
{
    check(reads(tty, "for you\n"));
}

static void background_read(int tty)
{
    pid_t pid = in_background(read_a_line, tty);

    check_stopped(pid, SIGTTIN);
    check(tcgetpgrp(tty) == getpgrp());
    check(tcsetpgrp(tty, pid) == 0);
    check(tcgetpgrp(tty) == pid);
    check(kill(-pid, SIGCONT) == 0);
    type_text(tty, "for you\n");
    check_ends_well(pid);
    // This group is now in the background; it ignores SIGTTOU to come back.
    on_signal(SIGTTOU, SIG_IGN, 0);
    check(tcsetpgrp(tty, getpgrp()) == 0);
    check_error(tcsetpgrp(tty, 1), EPERM);
    check_error(tcsetpgrp(tty, -4), EINVAL);
}

static void write_a_line(int tty)
{
    check(write(tty, "background\n", 11) == 11);
}

static void set_some_mode(int tty)
{
    set_flags(tty, ECHONL, 0);
}

static void background_write(int tty)
{
    pid_t pid = in_background(write_a_line, tty);

    check_ends_well(pid);
    set_flags(tty, TOSTOP, 0);
    pid = in_background(write_a_line, tty);
    check_stopped(pid, SIGTTOU);
    set_flags(tty, 0, TOSTOP);
    check(kill(pid, SIGCONT) == 0);
    check_ends_well(pid);
    pid = in_background(set_some_mode, tty);
    check_stopped(pid, SIGTTOU);
    check(kill(pid, SIGKILL) == 0);
    check(waitpid(pid, NULL, 0) == pid);
}

static void read_ignoring(int tty)
{
    char c;

    on_signal(SIGTTIN, SIG_IGN, 0);
    check_error(read(tty, &c, 1), EIO);
}

static void background_read_ignored(int tty)
{
    check_ends_well(in_background(read_ignoring, tty));
}

static void orphan(int tty)
{
    int result[2];
    char c = 'x';

    check(pipe(result) == 0);
    if (fork() == 0) {
        // The grandchild's group becomes orphaned: its only link to the shell
        // is this process, which ends.
        if (fork() == 0) {
            check(setpgid(0, 0) == 0);
            while (getppid() != 1)
                sleep_ms(5);
            errno = 0;
            c = read(tty, &c, 1) == -1 && errno == EIO ? 'y' : 'n';
            check(write(result[1], &c, 1) == 1);
        }
        _exit(0);
    }
    check(wait(NULL) > 0);
    check(read(result[0], &c, 1) == 1 && c == 'y');
}

// --- the controlling terminal -----------------------------------------------

static void use_dev_tty(int tty)
{
    int same = open("/dev/tty", O_RDWR);
    int status;

    check(same >= 0);
    check(tcgetsid(tty) == getpid());
    check(tcgetpgrp(same) == getpgrp());
    if (fork() == 0) {
        check(setsid() == getpid());
        check_error(open("/dev/tty", O_RDWR), ENXIO);
        check_error(tcgetpgrp(tty), ENOTTY);
        check_error(ioctl(tty, TIOCSCTTY, 0), EPERM); // it has a session
        _exit(0);
    }
    check(wait(&status) > 0 && exited_with(status, 0));
    if (fork() == 0) {
        check(ioctl(tty, TIOCNOTTY) == 0);
        check_error(open("/dev/tty", O_RDWR), ENXIO);
        check_error(ioctl(tty, TIOCNOTTY), ENOTTY);
        check_error(ioctl(tty, TIOCSCTTY, 0), EPERM); // no session leader
        _exit(0);
    }
    check(wait(&status) > 0 && exited_with(status, 0));
}

static void acquire_by_open(void)
{
    int tty;

    check(setsid() == getpid());
    tty = open(path, O_RDWR | O_NOCTTY);
    check(tty >= 0);
    check_error(open("/dev/tty", O_RDWR), ENXIO);
    check(open(path, O_RDWR) >= 0);
    check(open("/dev/tty", O_RDWR) >= 0);
    check(tcgetsid(tty) == getpid());
}

static int hang_up_ready[2], hang_up_result[2];

static void outlive_the_leader(int tty)
{
    ssize_t n;
    char c;

    if (fork() != 0) {
        check(read(hang_up_ready[0], &c, 1) == 1);
        sleep_ms(50); // it probably reads by then
        return;
    }
    on_signal(SIGHUP, catch, 0);
    check(write(hang_up_ready[1], "", 1) == 1);
    // The end of the terminal or the signal, whichever is first.
    errno = 0;
    n = read(tty, &c, 1);
    c = n == 0 || (n == -1 && errno == EINTR) ? 'y' : 'n';
    while (caught != SIGHUP)
        sleep_ms(5);
    // Linux does not hang up pseudo-terminals when their session ends.
    if (master < 0 && read(tty, &c, 1) != 0)
        c = 'r';
    errno = 0;
    if (master < 0 && (write(tty, &c, 1) != -1 || errno != EIO))
        c = 'w';
    check(write(hang_up_result[1], &c, 1) == 1);
    _exit(0);
}

static void hang_up(void)
{
    char c;

    check(pipe(hang_up_ready) == 0 && pipe(hang_up_result) == 0);
    in_session(outlive_the_leader);
    check(read(hang_up_result[0], &c, 1) == 1);
    check(c == 'y');
}

int main(void)
{
    static const struct {
        const char *what;
        void (*fn)(int tty);
    } tests[] = {
        { "default modes", default_modes },
        { "lines", lines },
        { "flush", flush_input },
        { "raw reads", raw_reads },
        { "poll", polling },
        { "window size", sizes },
        { "typed signals", typed_signals },
        { "background read", background_read },
        { "background write", background_write },
        { "background read, SIGTTIN ignored", background_read_ignored },
        { "orphaned group", orphan },
        { "/dev/tty", use_dev_tty },
    };

    alarm(TEST_SECONDS);
    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
        make_terminal();
        in_session(tests[i].fn);
        if (master >= 0)
            close(master);
        ok(tests[i].what);
    }
    make_terminal();
    check(exited_with(in_child(acquire_by_open), 0));
    ok("acquired by open");
    make_terminal();
    hang_up();
    ok("hang-up");
    return 0;
}
