// AHCI controllers: finding them, taking them over from the firmware, their
// interrupts and threads; see ahci.h.
#include "kernel/ahci/ahci.h"
#include "arch/clock.h"
#include "kernel/base/log.h"
#include "kernel/mm/heap.h"
#include "kernel/sched/thread.h"
#include "lib/format.h"

// PCI's classes: of all disks; AHCI's (CC); and what users take for it.
#define CLASS_DISKS 0x010000u
#define CLASS_AHCI 0x010601u
#define CLASS_RAID 0x010400u
#define CLASS_NVME 0x010802u
#define CLASS_MODE 0xffff00u // without the programming interface
#define REGISTERS_BAR 5u     // ABAR: 2.1.11
#define CONTROLLERS_MAX 4u
#define POLL_NS NSEC_PER_MSEC
#define LOST_NS (100 * NSEC_PER_MSEC) // an interrupt that was lost
#define HANDOFF_MS 25u                // 10.6.3
#define HANDOFF_BUSY_MS 2000u
#define RESET_MS 1000u // 10.4.3
#define ENABLE_MS 50u

static u32 controller_count, disk_numbers;

u32 hba_read(const struct ahci *h, u32 reg)
{
    return h->registers[reg / 4];
}

void hba_write(struct ahci *h, u32 reg, u32 value)
{
    h->registers[reg / 4] = value;
}

void hba_sleep(u32 ms)
{
    thread_sleep_until(clock_now_ns() + ms * NSEC_PER_MSEC,
                       WAIT_UNINTERRUPTIBLE);
}

// --- interrupts and events

// It stays off until the thread has taken the events, so there is one reader of
// the ports' status, and no interrupt while it is read.
static void interrupt(void *arg)
{
    struct ahci *h = arg;
    hba_write(h, HBA_GHC, GHC_AHCI);
    WRITE_ONCE(h->interrupts, h->interrupts + 1);
    waitq_wake_all(&h->wake);
}

bool hba_interrupts(const struct ahci *h)
{
    return READ_ONCE(h->interrupts) != 0;
}

// The ports' bits are cleared first: 10.1.2.
static void take_events(struct ahci *h)
{
    h->served = READ_ONCE(h->interrupts);
    u32 pending = hba_read(h, HBA_IS);
    if (pending == ~0u && hba_read(h, HBA_GHC) == ~0u) {
        h->dead = true;
        return;
    }
    for (u32 i = 0; i < PORTS_MOST; i++) {
        struct ahci_port *p = &h->ports[i];
        if (!(pending & h->implemented & 1u << i))
            continue;
        u32 events = port_read(p, PORT_IS);
        if (events & (IS_PHY_READY | IS_CONNECT))
            port_write(p, PORT_SERR, SERR_PHY_READY | SERR_EXCHANGED);
        port_write(p, PORT_IS, events);
        p->events |= events;
    }
    hba_write(h, HBA_IS, pending);
    hba_write(h, HBA_GHC, GHC_AHCI | GHC_INTERRUPTS);
}

void hba_wait(struct ahci *h, u64 limit)
{
    u64 period = hba_interrupts(h) ? LOST_NS : POLL_NS;
    wait_event(&h->wake, READ_ONCE(h->interrupts) != h->served,
               WAIT_UNINTERRUPTIBLE, MIN(limit, clock_now_ns() + period));
    take_events(h);
}

// --- start

// 10.6.3: the firmware has 25 ms, or 2 s if it says that it is busy.
static void take_over(struct ahci *h)
{
    if (hba_read(h, HBA_VS) < VS_HANDOFF ||
        !(hba_read(h, HBA_CAP2) & CAP2_HANDOFF))
        return;
    hba_write(h, HBA_BOHC, hba_read(h, HBA_BOHC) | BOHC_OS);
    u64 begun = clock_now_ns();
    for (;;) {
        u32 now = hba_read(h, HBA_BOHC);
        u64 ms = (clock_now_ns() - begun) / NSEC_PER_MSEC;
        if (!(now & BOHC_BIOS))
            return;
        if (ms >= (now & BOHC_BUSY ? HANDOFF_BUSY_MS : HANDOFF_MS))
            break;
        hba_sleep(1);
    }
    log_printf("ahci: controller %u: the firmware does not let go of it\n",
               h->number);
}

// Before any other register is used (3.1.2). Some controllers take it only when
// it is written again.
static bool enable(struct ahci *h)
{
    for (u32 ms = 0; ms < ENABLE_MS; ms += 10) {
        hba_write(h, HBA_GHC, GHC_AHCI);
        if (hba_read(h, HBA_GHC) & GHC_AHCI)
            return true;
        hba_sleep(10);
    }
    return false;
}

// 10.4.3
static const char *reset(struct ahci *h)
{
    hba_write(h, HBA_GHC, GHC_AHCI | GHC_RESET);
    for (u32 ms = 0; hba_read(h, HBA_GHC) & GHC_RESET; ms++) {
        if (ms == RESET_MS)
            return "its reset does not end";
        hba_sleep(1);
    }
    return enable(h) ? NULL : "it cannot be switched to AHCI";
}

static bool stop_ports(struct ahci *h)
{
    bool stopped = true;
    for (u32 i = 0; i < PORTS_MOST; i++) {
        if (h->ports[i].state != PORT_ABSENT)
            stopped &= port_stop(&h->ports[i]);
    }
    return stopped;
}

// 10.1.2. A port that does not stop needs a reset of all.
static const char *start(struct ahci *h)
{
    take_over(h);
    hba_write(h, HBA_GHC, GHC_AHCI);
    if (!stop_ports(h)) {
        const char *why = reset(h);
        if (why)
            return why;
    }
    hba_write(h, HBA_IS, ~0u);
    for (u32 i = 0; i < PORTS_MOST; i++) {
        struct ahci_port *p = &h->ports[i];
        if (p->state != PORT_ABSENT && !port_prepare(p))
            return "there is no memory for its ports";
    }
    return NULL;
}

// --- the thread

static bool has_work(const struct ahci *h)
{
    bool any = READ_ONCE(h->interrupts) != h->served;
    for (u32 i = 0; i < PORTS_MOST; i++)
        any |= port_has_work(&h->ports[i]);
    return any;
}

static u64 serve_ports(struct ahci *h)
{
    u64 next = WAIT_FOREVER;
    for (u32 i = 0; i < PORTS_MOST; i++)
        next = MIN(next, port_serve(&h->ports[i]));
    return next;
}

static bool any_starting(const struct ahci *h)
{
    for (u32 i = 0; i < PORTS_MOST; i++) {
        if (h->ports[i].state == PORT_STARTING)
            return true;
    }
    return false;
}

static void give_up(struct ahci *h, const char *why)
{
    log_printf("ahci: controller %u is given up: %s\n", h->number, why);
    h->dead = true;
    pci_disable_dma(&h->pci);
    for (u32 i = 0; i < PORTS_MOST; i++) {
        if (h->ports[i].device)
            block_fail(h->ports[i].device, why);
    }
}

static void controller_thread(void *arg)
{
    struct ahci *h = arg;
    bool said = false;
    bool messages = !pci_register_messages(&h->pci, interrupt, h, h->name);
    const char *why = start(h);
    if (why) {
        give_up(h, why);
        return;
    }
    take_events(h);
    while (!h->dead) {
        u64 next = serve_ports(h);
        if (!said && !any_starting(h)) {
            said = true;
            log_printf("ahci: controller %u: %04x:%04x at %02x:%02x.%u, %u "
                       "ports, %s\n",
                       h->number, h->pci.vendor, h->pci.product, h->pci.bus,
                       h->pci.device, h->pci.function,
                       (u32)__builtin_popcount(h->implemented),
                       hba_interrupts(h) ? "interrupts"
                       : messages        ? "no interrupts seen: polled every ms"
                                         : "no interrupts: polled every ms");
        }
        wait_event(&h->wake, has_work(h), WAIT_UNINTERRUPTIBLE, next);
        take_events(h);
    }
    give_up(h, "it has vanished");
}

static const char *map_registers(struct ahci *h)
{
    struct pci_memory m;
    if (!pci_memory(&h->pci, REGISTERS_BAR, &m))
        return "it has no address";
    if (m.size < HBA_PORTS + PORT_BYTES)
        return "its registers take too little memory";
    u32 bytes = (u32)MIN(m.size, (u64)AHCI_REGISTERS);
    h->registers = map_device(m.base, bytes);
    if (!h->registers)
        return "its registers cannot be mapped";
    pci_enable(&h->pci);
    if (!enable(h))
        return "it cannot be switched to AHCI";
    h->implemented = hba_read(h, HBA_PI);
    u32 most = (bytes - HBA_PORTS) / PORT_BYTES;
    if (most < PORTS_MOST)
        h->implemented &= (1u << most) - 1;
    return h->implemented ? NULL : "it has no ports";
}

// A disk's number is that of its port, behind all ports of the controllers
// before this one.
static void name_ports(struct ahci *h)
{
    h->first = disk_numbers;
    for (u32 i = 0; i < PORTS_MOST; i++) {
        struct ahci_port *p = &h->ports[i];
        p->hba = h;
        p->number = i;
        format(p->name, sizeof(p->name), "sata%u", h->first + i);
        if (!(h->implemented & 1u << i))
            continue;
        p->state = PORT_EMPTY;
        disk_numbers = h->first + i + 1;
    }
}

static void say_unused(const struct pci_function *f)
{
    const char *why = f->class == CLASS_NVME ? "there is no driver for NVMe"
                      : (f->class & CLASS_MODE) == CLASS_RAID
                          ? "it is in RAID mode: in the firmware's setup "
                            "choose AHCI"
                          : NULL;
    if (why)
        log_printf("disk: %04x:%04x at %02x:%02x.%u is not used: %s\n",
                   f->vendor, f->product, f->bus, f->device, f->function, why);
}

static void found(const struct pci_function *f, void *arg UNUSED)
{
    if (f->class != CLASS_AHCI) {
        say_unused(f);
        return;
    }
    struct ahci *h =
        controller_count < CONTROLLERS_MAX ? kzalloc(sizeof(*h)) : NULL;
    if (!h) {
        log_printf("ahci: a controller is left out: too many, or no memory\n");
        return;
    }
    h->number = ++controller_count;
    h->pci = *f;
    waitq_init(&h->wake, "ahci");
    format(h->name, sizeof(h->name), "ahci/%u", h->number);
    const char *why = map_registers(h);
    if (why) {
        log_printf("ahci: controller %u is given up: %s\n", h->number, why);
        return;
    }
    name_ports(h);
    if (kthread_create(h->name, controller_thread, h, NULL))
        log_printf("ahci: no memory for the thread of controller %u\n",
                   h->number);
}

void ahci_start(void)
{
    pci_each_of_base(CLASS_DISKS, found, NULL);
}
