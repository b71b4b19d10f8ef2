// The i8042 keyboard controller (IBM PS/2 technical reference), translating to
// scan code set 1. The second port (mouse) stays disabled.
//
// Set up once, by one thread; afterwards only the interrupt handler, which runs
// on the boot CPU, accesses the controller and the state here.
#include "arch/i386/dev/ps2.h"
#include "arch/clock.h"
#include "arch/cpu.h"
#include "arch/i386/dev/port.h"
#include "arch/irq.h"
#include "kernel/base/keyboard.h"
#include "kernel/base/log.h"

#define DATA 0x60
#define STATUS 0x64
#define COMMAND 0x64
#define KEYBOARD_IRQ 1

#define STATUS_OUTPUT_FULL 0x01 // a byte is available to the host
#define STATUS_INPUT_FULL 0x02  // the host's byte has not been read yet
#define STATUS_SECOND_PORT 0x20
#define STATUS_ABSENT 0xff

#define READ_CONFIG 0x20
#define WRITE_CONFIG 0x60
#define DISABLE_SECOND 0xa7
#define DISABLE_KEYBOARD 0xad
#define ENABLE_KEYBOARD 0xae
#define CONFIG_INTERRUPT 0x01
#define CONFIG_INTERRUPT_SECOND 0x02
#define CONFIG_KEYBOARD_OFF 0x10
#define CONFIG_TRANSLATE 0x40

#define KEYBOARD_ENABLE_SCANNING 0xf4
#define KEYBOARD_ACKNOWLEDGE 0xfa

#define ANSWER_LIMIT_NS (50 * NSEC_PER_MSEC)
#define FLUSH_MAX 32
#define CODES_MAX 16 // most that one interrupt reads

static struct keymap keymap = { .num_lock = true };

static bool wait_status(u8 bit, u8 wanted)
{
    u64 limit = clock_now_ns() + ANSWER_LIMIT_NS;
    while ((in8(STATUS) & bit) != wanted) {
        if (clock_now_ns() > limit)
            return false;
        cpu_relax();
    }
    return true;
}

static bool send(u16 port, u8 value)
{
    if (!wait_status(STATUS_INPUT_FULL, 0))
        return false;
    out8(port, value);
    return true;
}

static bool receive(u8 *value)
{
    if (!wait_status(STATUS_OUTPUT_FULL, STATUS_OUTPUT_FULL))
        return false;
    *value = in8(DATA);
    return true;
}

static void flush(void)
{
    for (u32 i = 0; i < FLUSH_MAX && in8(STATUS) & STATUS_OUTPUT_FULL; i++)
        in8(DATA);
}

static bool start_controller(void)
{
    u8 config;
    if (in8(STATUS) == STATUS_ABSENT || !send(COMMAND, DISABLE_KEYBOARD) ||
        !send(COMMAND, DISABLE_SECOND))
        return false;
    flush();
    if (!send(COMMAND, READ_CONFIG) || !receive(&config))
        return false;
    config |= CONFIG_INTERRUPT | CONFIG_TRANSLATE;
    config &= ~(CONFIG_INTERRUPT_SECOND | CONFIG_KEYBOARD_OFF);
    return send(COMMAND, WRITE_CONFIG) && send(DATA, config) &&
           send(COMMAND, ENABLE_KEYBOARD);
}

static bool start_keyboard(void)
{
    u8 answer;
    return send(DATA, KEYBOARD_ENABLE_SCANNING) && receive(&answer) &&
           answer == KEYBOARD_ACKNOWLEDGE;
}

static void interrupt(void *arg UNUSED)
{
    for (u32 i = 0; i < CODES_MAX; i++) {
        u8 status = in8(STATUS);
        if (!(status & STATUS_OUTPUT_FULL))
            return;
        u8 code = in8(DATA);
        if (!(status & STATUS_SECOND_PORT))
            keyboard_code(&keymap, code);
    }
}

void ps2_start(struct tty_driver *screen)
{
    keyboard_attach(screen);
    if (!start_controller()) {
        log_printf("ps2: no keyboard controller\n");
        return;
    }
    if (!start_keyboard()) // a keyboard may be plugged in later
        log_printf("ps2: no keyboard answers\n");
    int err = irq_register_isa(KEYBOARD_IRQ, interrupt, NULL, "keyboard");
    if (err)
        log_printf("ps2: no interrupt %u (error %d)\n", KEYBOARD_IRQ, err);
}
