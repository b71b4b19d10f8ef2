// 16550 serial ports: COM1 and COM2, as consoles and terminals. With
// console=spcr the first one is the port that the firmware names, with
// console=ttyS1 or console=0x3e8,9600 that port.
//
// `lock` guards a port's registers and its state. Lock order: a tty's lock
// (held by the caller of uart_write), then `lock`; so the interrupt handler
// calls the tty layer without `lock`.
//
// Interrupts are edge-triggered: the handler clears the interrupt enable
// register first and sets it last, so that anything pending then raises the
// line again. Enabling the transmit interrupt while the transmitter is empty
// interrupts at once (all clones do that; Windows depends on it).
#include "arch/i386/dev/uart.h"
#include "arch/i386/acpi/spcr.h"
#include "arch/i386/dev/device_lock.h"
#include "arch/i386/dev/port.h"
#include "arch/i386/dev/serial_name.h"
#include "arch/irq.h"
#include "kernel/base/errors.h"
#include "kernel/base/log.h"
#include "kernel/base/tty_driver.h"
#include "lib/format.h"
#include "lib/set.h"
#include "lib/string.h"

enum { // registers (data sheet PC16550D, 8.0)
    DATA = 0,
    INTERRUPT_ENABLE = 1,
    DIVISOR_LOW = 0, // with LINE_DLAB
    DIVISOR_HIGH = 1,
    FIFO_CONTROL = 2,
    INTERRUPT_ID = 2,
    LINE_CONTROL = 3,
    MODEM_CONTROL = 4,
    LINE_STATUS = 5,
    SCRATCH = 7,
};

#define IER_RECEIVE 0x01
#define IER_TRANSMIT 0x02
#define IER_LINE_STATUS 0x04 // for a break: below the FIFO's trigger
#define FCR_ENABLE_CLEAR 0x07
#define FCR_TRIGGER_8 0x80
#define IIR_FIFOS 0xc0
#define LINE_8N1 0x03
#define LINE_DLAB 0x80
#define MODEM_DTR 0x01
#define MODEM_RTS 0x02
#define MODEM_OUT2 0x08 // gates the interrupt line on PCs
#define LSR_READY 0x01
#define LSR_OVERRUN 0x02
#define LSR_BREAK 0x10
#define LSR_EMPTY 0x20 // the transmit FIFO is empty
#define LSR_IDLE 0x40  // and the shift register, too

#define DIVISOR_115200 1
#define FIFO_SIZE 16u

// Most bytes that one call sends while the port accepts them at once (as
// emulated ones do), to limit the time with interrupts off.
#define WRITE_MAX 64u
#define RECEIVE_MAX 64u // most bytes that one interrupt receives

// Reads of the line status, for one FIFO's contents, until a port is considered
// stuck: some seconds. A stuck port is not waited for again until it moves.
#define EMPTY_SPINS 10000000u
#define EMPTY_SPINS_STUCK 100u

ERROR_COUNTER(output_lost, "console output, lost",
              "the serial line is blocked; see dmesg for the text");
ERROR_COUNTER(input_lost, "serial input, lost", "overrun; logged once");

struct uart {
    u16 port;
    u8 irq;      // 0: none: a console, but no terminal
    u16 divisor; // of its clock, for the rate; 0: as the firmware has set it
    u8 fifo;     // capacity of the transmit FIFO in bytes
    enum { UNKNOWN, ABSENT, PRESENT } state;
    bool stuck;      // polled output has timed out
    bool started;    // interrupts are in use
    bool in_handler; // the handler is about to set the interrupt enables
    bool want_room;  // the tty has more to send
    bool throttled;  // the tty has no room for more input
    bool got_break;  // the console's: a request (kernel/base/tty_driver.h),
    u32 break_at;    // and the number of input bytes before it
    bool overrun;    // input was lost
    bool overrun_logged;
    struct spinlock lock;
    struct tty_driver *driver;
};

static struct tty_driver ttyS0, ttyS1;
static struct uart com1 = {
    .port = 0x3f8,
    .irq = 4,
    .divisor = DIVISOR_115200,
    .lock = SPINLOCK_INIT("ttyS0"),
    .driver = &ttyS0,
};
static struct uart com2 = {
    .port = 0x2f8,
    .irq = 3,
    .divisor = DIVISOR_115200,
    .lock = SPINLOCK_INIT("ttyS1"),
    .driver = &ttyS1,
};

static struct uart *uart_of(const struct tty_driver *d)
{
    return d == &ttyS0 ? &com1 : &com2;
}

static u8 get(const struct uart *u, u8 reg)
{
    return in8(u->port + reg);
}

static void set(const struct uart *u, u8 reg, u8 value)
{
    out8(u->port + reg, value);
}

static bool answers(const struct uart *u)
{
    set(u, INTERRUPT_ENABLE, 0);
    if (get(u, INTERRUPT_ENABLE) != 0)
        return false;
    set(u, SCRATCH, 0x5a);
    if (get(u, SCRATCH) != 0x5a)
        return false;
    set(u, SCRATCH, 0xa5);
    return get(u, SCRATCH) == 0xa5;
}

static void init(struct uart *u)
{
    if (u->divisor) {
        set(u, LINE_CONTROL, LINE_DLAB);
        set(u, DIVISOR_LOW, (u8)u->divisor);
        set(u, DIVISOR_HIGH, u->divisor >> 8);
    }
    set(u, LINE_CONTROL, LINE_8N1);
    set(u, FIFO_CONTROL, FCR_ENABLE_CLEAR | FCR_TRIGGER_8);
    set(u, MODEM_CONTROL, MODEM_DTR | MODEM_RTS | MODEM_OUT2);
    bool fifos = (get(u, INTERRUPT_ID) & IIR_FIFOS) == IIR_FIFOS;
    u->fifo = fifos ? FIFO_SIZE : 1;
}

static bool probe(struct uart *u)
{
    if (u->state == UNKNOWN) {
        u->state = answers(u) ? PRESENT : ABSENT;
        if (u->state == PRESENT)
            init(u);
    }
    return u->state == PRESENT;
}

// --- console: polled

// False: the line is stuck.
static bool wait_status(struct uart *u, u8 bit)
{
    u32 limit = u->stuck ? EMPTY_SPINS_STUCK : EMPTY_SPINS;
    u32 spins = 0;
    while (!(get(u, LINE_STATUS) & bit) && ++spins < limit)
        cpu_relax();
    u->stuck = spins == limit;
    return !u->stuck;
}

// `room`: bytes the FIFO takes before the status must be read again.
static void put_polled(struct uart *u, u8 byte, u32 *room)
{
    if (!*room && !wait_status(u, LSR_EMPTY)) {
        error_count(&output_lost);
        return;
    }
    *room = (*room ? *room : u->fifo) - 1;
    set(u, DATA, byte);
}

void uart_drain(void)
{
    if (com1.state == PRESENT)
        wait_status(&com1, LSR_IDLE);
    if (com2.state == PRESENT)
        wait_status(&com2, LSR_IDLE);
}

static bool follow_argument(void);

static bool console_probe(void)
{
    follow_argument();
    return probe(&com1);
}

static void console_write(const char *text, size_t n)
{
    struct uart *u = &com1;
    if (u->state != PRESENT)
        return;
    struct device_lock_state s = device_lock(&u->lock);
    u32 room = 0;
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '\n')
            put_polled(u, '\r', &room);
        put_polled(u, (u8)text[i], &room);
    }
    device_unlock(&u->lock, s);
}

static const struct console console = {
    .name = "ttyS0",
    .alias = "spcr",
    .named = follow_argument,
    .rank = 200,
    .probe = console_probe,
    .write = console_write,
};
CONSOLE(console);

// --- another port than COM1

// COM2 and COM1 change places if it is COM2. False: no port answers there.
static bool move_com1(const struct spcr_port *p)
{
    struct uart old1 = com1, old2 = com2;
    com1.divisor = p->divisor;
    com1.state = UNKNOWN;
    com1.stuck = false;
    if (p->port != com1.port) {
        com1.port = p->port;
        com1.irq = p->irq;
    }
    if (p->port == com2.port) {
        com1.irq = p->irq ? p->irq : com2.irq;
        com2.port = old1.port;
        com2.irq = old1.irq;
        com2.state = UNKNOWN;
    }
    if (probe(&com1))
        return true;
    com1 = old1;
    com2 = old2;
    return false;
}

// Lets ttyS0 be the port that console= names, when it is first known. False: it
// names none, or none that answers.
static bool follow_argument(void)
{
    static struct spcr_port port;
    static bool known, moved;
    const char *text = console_argument();
    if (!text || known || console_wanted("ttyS0")) // that is COM1, as it is
        return moved;
    known = true;
    if (!serial_name_parse(text, &port))
        return false;
    uart_drain();
    moved = move_com1(&port);
    return moved;
}

static void report_port(u32 rate, u32 irq)
{
    char at[24] = "the firmware's rate", by[32] = "no interrupt, no terminal";
    if (rate)
        format(at, sizeof(at), "%u baud", rate);
    if (irq)
        format(by, sizeof(by), "interrupt %u", irq);
    log_printf("console=%s: ttyS0 is at port %#x, %s, %s\n", console_argument(),
               com1.port, at, by);
}

void uart_follow_spcr(void)
{
    const struct spcr_port *p = &spcr_port;
    if (console_argument() && follow_argument())
        report_port(SERIAL_RATE_MAX / com1.divisor, com1.irq);
    if (!console_wanted(console.alias))
        return;
    if (spcr_problem) {
        log_printf("console=spcr: no use of ACPI's table SPCR: %s\n",
                   spcr_problem);
        return;
    }
    bool other = p->port != com1.port;
    uart_drain(); // the rate changes
    if (!move_com1(p)) {
        log_printf("console=spcr: no 16550 answers at port %#x\n", p->port);
        return;
    }
    console_init();
    if (other)
        console_show_log(&console);
    report_port(p->rate, com1.irq);
}

// --- terminal: by interrupts

static void set_interrupts(const struct uart *u)
{
    spin_assert_held(&u->lock);
    u8 receive = u->throttled ? 0 : IER_RECEIVE | IER_LINE_STATUS;
    u8 transmit = u->want_room ? IER_TRANSMIT : 0;
    if (u->started && !u->in_handler)
        set(u, INTERRUPT_ENABLE, receive | transmit);
}

static size_t uart_write(struct tty_driver *d, const char *text, size_t n)
{
    struct uart *u = uart_of(d);
    u32 flags = spin_lock_irq(&u->lock);
    size_t done = 0, limit = MIN(n, (size_t)WRITE_MAX);
    while (done < limit && get(u, LINE_STATUS) & LSR_EMPTY) {
        size_t end = MIN(done + u->fifo, limit);
        while (done < end)
            set(u, DATA, (u8)text[done++]);
    }
    bool want_room = done < n;
    if (want_room != u->want_room) {
        u->want_room = want_room;
        set_interrupts(u);
    }
    spin_unlock_irq(&u->lock, flags);
    return done;
}

// With RTS off the FIFO fills: the sender pauses, if it supports flow control.
static void uart_throttle(struct tty_driver *d, bool on)
{
    struct uart *u = uart_of(d);
    u32 flags = spin_lock_irq(&u->lock);
    u->throttled = on;
    set(u, MODEM_CONTROL, MODEM_OUT2 | MODEM_DTR | (on ? 0 : MODEM_RTS));
    set_interrupts(u);
    spin_unlock_irq(&u->lock, flags);
}

static u32 receive(struct uart *u, char *buf)
{
    spin_assert_held(&u->lock);
    u32 n = 0;
    u8 status;
    while (n < RECEIVE_MAX && (status = get(u, LINE_STATUS)) & LSR_READY) {
        buf[n] = (char)get(u, DATA);
        if (status & LSR_OVERRUN) {
            u->overrun = true;
            error_count(&input_lost);
        }
        if (!(status & LSR_BREAK)) {
            n++;
        } else { // reads as a NUL
            u->got_break = true;
            u->break_at = n;
        }
    }
    return n;
}

// Removes a request's letter, which follows the break, from the input; returns
// the length of the rest.
static u32 take_requests(struct uart *u, char *buf, u32 n)
{
    u32 at = 0;
    if (u->got_break) {
        at = u->break_at;
        sysrq_break();
    }
    u->got_break = false;
    if (at == n || !sysrq_letter(buf[at]))
        return n;
    memmove(buf + at, buf + at + 1, n - at - 1);
    return n - 1;
}

static void interrupt(void *arg)
{
    struct uart *u = arg;
    char buf[RECEIVE_MAX];
    u32 flags = spin_lock_irq(&u->lock);
    u->in_handler = true;
    set(u, INTERRUPT_ENABLE, 0);
    u32 n = u->throttled ? 0 : receive(u, buf);
    bool room = u->want_room && get(u, LINE_STATUS) & LSR_EMPTY;
    if (room)
        u->want_room = false; // uart_write sets it again if needed
    spin_unlock_irq(&u->lock, flags);
    if (u == &com1)
        n = take_requests(u, buf, n);
    if (n)
        tty_input(u->driver->tty, buf, n);
    if (room)
        tty_output_ready(u->driver->tty);
    flags = spin_lock_irq(&u->lock);
    u->in_handler = false;
    set_interrupts(u);
    spin_unlock_irq(&u->lock, flags);
    if (u->overrun && !u->overrun_logged) {
        u->overrun_logged = true;
        log_printf("%s: input overrun, characters are lost\n", u->driver->name);
    }
}

static bool uart_present(struct tty_driver *d)
{
    return uart_of(d)->irq && probe(uart_of(d));
}

static void uart_start(struct tty_driver *d)
{
    struct uart *u = uart_of(d);
    int err = irq_register_isa(u->irq, interrupt, u, d->name);
    if (err) {
        log_printf("%s: no interrupt %u (error %d)\n", d->name, u->irq, err);
        return;
    }
    u32 flags = spin_lock_irq(&u->lock);
    u->started = true;
    set_interrupts(u);
    spin_unlock_irq(&u->lock, flags);
}

#define TTY_MAJOR 4u
#define SERIAL_MINOR 64u

static struct tty_driver ttyS0 = {
    .name = "ttyS0",
    .rdev = TTY_MAJOR << 8 | SERIAL_MINOR,
    .write = uart_write,
    .present = uart_present,
    .start = uart_start,
    .throttle = uart_throttle,
};
static struct tty_driver ttyS1 = {
    .name = "ttyS1",
    .rdev = TTY_MAJOR << 8 | (SERIAL_MINOR + 1),
    .write = uart_write,
    .present = uart_present,
    .start = uart_start,
    .throttle = uart_throttle,
};
TTY_DRIVER(ttyS0);
TTY_DRIVER(ttyS1);
