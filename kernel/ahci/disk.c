// The device at a port, from its appearance to its end, and its transfers.
#include "arch/clock.h"
#include "kernel/ahci/ahci.h"
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/mm/frame.h"
#include "lib/string.h"

#define STEP_NS (10 * NSEC_PER_MSEC)
#define CHECK_NS NSEC_PER_SEC
#define LINK_NS (100 * NSEC_PER_MSEC) // until a device shows itself
#define READY_NS (10 * NSEC_PER_SEC)  // until it has spun up
#define ATTEMPTS 3u
#define BUFFER_ORDER 3u // BLOCK_AT_ONCE sectors

_Static_assert((PAGE_SIZE << BUFFER_ORDER) == BLOCK_AT_ONCE * BLOCK_SECTOR,
               "the buffer");

static void begin(struct ahci_port *p)
{
    u64 now = clock_now_ns();
    p->state = PORT_STARTING;
    p->reset = false;
    p->resets = 0;
    p->link_deadline = now + LINK_NS;
    p->deadline = now + READY_NS;
}

// It is listed; `why`: but not used.
static void list(struct ahci_port *p, const char *why)
{
    p->device = block_add(&(struct block_facts){
        .bus = "ahci",
        .name = p->name,
        .model = p->facts.model,
        .sectors = p->facts.sectors,
        .unfit = why,
        .wake = &p->hba->wake,
    });
    if (!p->device)
        log_printf("ahci: %s: not listed: no memory is left\n", p->name);
    p->state = why || !p->device ? PORT_UNUSED : PORT_DISK;
}

static void leave(struct ahci_port *p, const char *why)
{
    log_printf("ahci: %s: not used: %s\n", p->name, why);
    list(p, why);
}

void port_give_up(struct ahci_port *p, const char *why)
{
    log_printf("ahci: %s: given up: %s\n", p->name, why);
    port_stop(p);
    if (p->device)
        block_fail(p->device, why);
    p->state = PORT_UNUSED;
}

static void remove(struct ahci_port *p)
{
    if (p->device)
        block_remove(p->device);
    p->device = NULL;
    log_printf("ahci: %s: unplugged\n", p->name);
    port_stop_commands(p);
    port_write(p, PORT_SERR, ~0u);
    begin(p);
}

// --- start

static const char *identify(struct ahci_port *p)
{
    struct ata_command c = ata_identify();
    if (!p->frames)
        p->frames = frame_alloc(BUFFER_ORDER, FRAME_LOW, FRAME_BUFFER);
    if (!p->frames)
        return "there is no memory for its buffer";
    p->data = frame_va(p->frames);
    port_start_commands(p);
    int err = -EAGAIN;
    for (u32 i = 0; i < ATTEMPTS && err == -EAGAIN; i++)
        err = port_run(p, &c);
    if (err)
        return "it does not say what it is";
    return ata_parse_identify(p->data, &p->facts);
}

static void start_device(struct ahci_port *p)
{
    u32 signature = port_read(p, PORT_SIG);
    memset(&p->facts, 0, sizeof(p->facts));
    if (signature != SIGNATURE_ATA) {
        leave(p, signature == SIGNATURE_ATAPI
                     ? "a CD drive, or another ATAPI device"
                     : "it is no disk");
        return;
    }
    const char *why = identify(p);
    if (why) {
        leave(p, why);
        port_stop_commands(p);
        return;
    }
    log_printf("ahci: %s: %s, %llu MiB, addresses of %u bits\n", p->name,
               p->facts.model, p->facts.sectors / SECTORS_OF_MIB,
               p->facts.wide ? 48 : 28);
    list(p, NULL);
}

static u64 start_step(struct ahci_port *p)
{
    u64 now = clock_now_ns();
    u32 link = port_link(p);
    if (link == DET_NOTHING && now >= p->link_deadline) {
        p->state = PORT_EMPTY;
        return now + CHECK_NS;
    }
    if (link == DET_READY && port_idle(p) &&
        port_read(p, PORT_SIG) != SIGNATURE_NONE) {
        start_device(p);
        return now;
    }
    if (now < p->deadline)
        return now + STEP_NS;
    if (p->reset) {
        leave(p, "it does not become ready");
        return now + CHECK_NS;
    }
    p->reset = true;
    port_reset(p);
    p->deadline = clock_now_ns() + READY_NS;
    return now + STEP_NS;
}

// --- transfers

static int transfer(struct ahci_port *p, const struct block_request *r)
{
    struct ata_command c;
    if (r->flush) {
        if (!ata_flush(&p->facts, &c))
            return 0; // it has no cache
        return port_run(p, &c);
    }
    c = ata_transfer(&p->facts, r->write, r->sector, r->count);
    int err = -EAGAIN;
    for (u32 i = 0; i < ATTEMPTS && err == -EAGAIN; i++) {
        if (r->write)
            memcpy(p->data, r->data, c.bytes);
        err = port_run(p, &c);
    }
    if (!err && !r->write)
        memcpy(r->data, p->data, c.bytes);
    return err;
}

static void serve_disk(struct ahci_port *p)
{
    struct block_request r;
    while (p->state == PORT_DISK && block_request(p->device, &r)) {
        int err = transfer(p, &r);
        block_answer(p->device, err ? -EIO : 0);
        if (err == -ENODEV)
            remove(p);
        else if (err == -ETIMEDOUT)
            port_give_up(p, "a reset does not help");
    }
}

// A change of PhyRdy is an end, also if the link is up again: it may be another
// device. What is not used may have a link that does not come up.
static bool has_gone(struct ahci_port *p)
{
    u32 link = port_link(p);
    return p->events & IS_PHY_READY || link == DET_NOTHING ||
           (p->state == PORT_DISK && link != DET_READY);
}

u64 port_serve(struct ahci_port *p)
{
    if (p->state == PORT_ABSENT || p->hba->dead)
        return WAIT_FOREVER;
    if ((p->state == PORT_DISK || p->state == PORT_UNUSED) && has_gone(p))
        remove(p);
    if (p->state == PORT_EMPTY && port_link(p) != DET_NOTHING)
        begin(p);
    p->events = 0;
    if (p->state == PORT_STARTING)
        return start_step(p);
    if (p->state == PORT_DISK)
        serve_disk(p);
    return clock_now_ns() + CHECK_NS;
}

bool port_has_work(const struct ahci_port *p)
{
    return p->state == PORT_DISK && block_asked(p->device);
}
