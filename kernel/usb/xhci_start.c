// Start of an xHCI controller (xHCI 1.2, 4.2): its registers are mapped, the
// firmware gives it up, it is reset, and its rings and contexts are set up.
//
// All its memory is from the low zone, below 4 GiB: the upper halves of
// addresses are 0.
#include "arch/clock.h"
#include "kernel/base/log.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/heap.h"
#include "kernel/sched/thread.h"
#include "kernel/usb/intel_ports.h"
#include "kernel/usb/registers.h"
#include "kernel/usb/xhci.h"

#define REGISTERS_LEAST 0x1000u
#define REGISTERS_MOST KIB(128)
#define FIRMWARE_MS 1000u
#define HALT_MS 100u
#define RESET_MS 1000u
#define READY_MS 5000u
#define EXTENDED_MAX 64u // capabilities in the list

static bool wait_register(struct xhci *x, u32 offset, u32 bits, u32 wanted,
                          u32 ms)
{
    u64 limit = clock_now_ns() + ms * NSEC_PER_MSEC;
    while ((reg_read(x, offset) & bits) != wanted) {
        if (clock_now_ns() > limit)
            return false;
        thread_sleep_until(clock_now_ns() + NSEC_PER_MSEC,
                           WAIT_UNINTERRUPTIBLE);
    }
    return true;
}

static const char *map_registers(struct xhci *x)
{
    struct pci_memory m;
    if (!pci_memory(&x->pci, 0, &m))
        return "it has no address";
    if (m.size < REGISTERS_LEAST)
        return "its registers take too little memory";
    x->size = (u32)MIN(m.size, (u64)REGISTERS_MOST);
    x->registers = map_device(m.base, x->size);
    return x->registers ? NULL : "its registers cannot be mapped";
}

static const char *read_capabilities(struct xhci *x)
{
    u32 structure = reg_read(x, CAP_STRUCTURE1);
    u32 parameters = reg_read(x, CAP_PARAMETERS1);
    x->operational = reg_read(x, CAP_LENGTH) & 0xff;
    x->runtime = reg_read(x, CAP_RUNTIME) & ~31u;
    x->doorbells = reg_read(x, CAP_DOORBELLS) & ~3u;
    x->ports = PORTS_OF(structure);
    x->slots = MIN(SLOTS_OF(structure), XHCI_SLOTS_MAX);
    x->context_bytes = parameters & PARAMETER_LARGE_CONTEXTS ? 64 : 32;
    x->port_power = parameters & PARAMETER_PORT_POWER;
    if (!x->ports || !x->slots || x->operational % 4 ||
        x->operational + OP_PORTS + x->ports * 16 > x->size ||
        x->runtime > x->size - 0x40 ||
        x->doorbells > x->size - 4 * (XHCI_SLOTS_MAX + 1)) {
        x->operational = 0;
        return "its registers contradict each other";
    }
    if (!(op_read(x, OP_PAGE_SIZE) & PAGE_SIZE_4K))
        return "it has no pages of 4 KiB";
    return NULL;
}

// The firmware may use the controller, for its own keyboard driver (7.1). If it
// does not answer it is ignored, and its interrupts (SMI) are switched off.
static void take_from_firmware(struct xhci *x, u32 at)
{
    reg_write(x, at, reg_read(x, at) | LEGACY_OS);
    if (!wait_register(x, at, LEGACY_BIOS, 0, FIRMWARE_MS))
        log_printf("usb: controller %u: the firmware does not give it up; "
                   "taken\n",
                   x->number);
    reg_write(x, at, (reg_read(x, at) & ~LEGACY_BIOS) | LEGACY_OS);
    u32 control = reg_read(x, at + LEGACY_CONTROL);
    reg_write(x, at + LEGACY_CONTROL,
              (control & LEGACY_SMI_OFF) | LEGACY_SMI_EVENTS);
}

static void look_for_firmware(struct xhci *x)
{
    u32 at = EXTENDED_OF(reg_read(x, CAP_PARAMETERS1)) * 4;
    for (u32 i = 0; i < EXTENDED_MAX && at && at + 8 <= x->size; i++) {
        u32 capability = reg_read(x, at);
        if ((capability & 0xff) == EXTENDED_LEGACY) {
            take_from_firmware(x, at);
            return;
        }
        u32 next = (capability >> 8 & 0xff) * 4;
        if (!next)
            return;
        at += next;
    }
}

static const char *reset(struct xhci *x)
{
    u32 command = x->operational + OP_COMMAND;
    u32 status = x->operational + OP_STATUS;
    if (!wait_register(x, status, STATUS_NOT_READY, 0, READY_MS))
        return "it does not become ready";
    reg_write(x, command, reg_read(x, command) & ~COMMAND_RUN);
    if (!wait_register(x, status, STATUS_HALTED, STATUS_HALTED, HALT_MS))
        return "it does not halt";
    reg_write(x, command, COMMAND_RESET);
    // Some controllers must not be read at once after this.
    thread_sleep_until(clock_now_ns() + NSEC_PER_MSEC, WAIT_UNINTERRUPTIBLE);
    if (!wait_register(x, command, COMMAND_RESET, 0, RESET_MS) ||
        !wait_register(x, status, STATUS_NOT_READY, 0, READY_MS))
        return "its reset does not end";
    return NULL;
}

static u32 physical(const void *page)
{
    return (u32)virt_to_phys(page);
}

static void op_write_address(struct xhci *x, u32 reg, u32 address)
{
    op_write(x, reg, address);
    op_write(x, reg + 4, 0);
}

// Memory for the controller's own use (4.20).
static bool give_scratchpads(struct xhci *x)
{
    u32 n = SCRATCHPADS_OF(reg_read(x, CAP_STRUCTURE2));
    if (!n)
        return true;
    u32 order = n * 8 > PAGE_SIZE; // of the list of their addresses
    struct frame *f = frame_alloc(order, FRAME_LOW | FRAME_ZERO, FRAME_BUFFER);
    x->scratchpads = kzalloc(n * sizeof(*x->scratchpads));
    if (!f || !x->scratchpads)
        return false;
    u32 *list = frame_va(f);
    x->device_contexts[0] = physical(list);
    for (u32 i = 0; i < n; i++) {
        void *page = page_alloc(FRAME_BUFFER);
        if (!page)
            return false;
        x->scratchpads[i] = page;
        list[2 * i] = physical(page);
    }
    x->scratchpad_list = list;
    return true;
}

// The event ring's table has one segment (6.5).
static const char *set_up_memory(struct xhci *x)
{
    x->device_contexts = page_alloc(FRAME_BUFFER);
    x->input = page_alloc(FRAME_BUFFER);
    x->segments = page_alloc(FRAME_BUFFER);
    void *commands = page_alloc(FRAME_BUFFER);
    void *events = page_alloc(FRAME_BUFFER);
    if (!x->device_contexts || !x->input || !x->segments || !commands ||
        !events || !give_scratchpads(x))
        return "no memory is left";
    ring_init(&x->commands, commands, physical(commands));
    events_init(&x->events, events);
    x->segments[0] = physical(events);
    x->segments[2] = RING_TRBS;
    return NULL;
}

static void program(struct xhci *x)
{
    op_write(x, OP_CONFIG, x->slots);
    op_write_address(x, OP_CONTEXTS, physical(x->device_contexts));
    op_write_address(x, OP_COMMAND_RING, x->commands.address | TRB_CYCLE);
    u32 run = x->runtime;
    reg_write(x, run + RUN_TABLE_SIZE, 1);
    reg_write(x, run + RUN_DEQUEUE, physical(x->events.trbs));
    reg_write(x, run + RUN_DEQUEUE + 4, 0);
    reg_write(x, run + RUN_TABLE, physical(x->segments));
    reg_write(x, run + RUN_TABLE + 4, 0);
    reg_write(x, run + RUN_IMOD, IMOD_250NS);
    reg_write(x, run + RUN_IMAN, IMAN_PENDING | IMAN_ENABLE);
    op_write(x, OP_COMMAND, COMMAND_RUN | COMMAND_INTERRUPTS);
}

const char *xhci_start(struct xhci *x)
{
    const char *why = map_registers(x);
    if (why)
        return why;
    pci_enable(&x->pci);
    why = read_capabilities(x);
    if (why)
        return why;
    look_for_firmware(x);
    intel_ports_take(&x->pci);
    why = reset(x);
    if (why)
        return why;
    why = set_up_memory(x);
    if (why)
        return why;
    WRITE_ONCE(x->running, true);
    program(x);
    return wait_register(x, x->operational + OP_STATUS, STATUS_HALTED, 0,
                         HALT_MS)
               ? NULL
               : "it does not start";
}

// Halting takes up to 16 ms (5.4.1.1); after that it can access no memory
// either.
void xhci_stop(struct xhci *x)
{
    if (x->operational)
        op_write(x, OP_COMMAND, 0);
    pci_disable_dma(&x->pci);
}
