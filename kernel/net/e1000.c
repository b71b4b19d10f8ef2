// Intel's 82574L, and the 82540 to 82547, by legacy descriptors: rings of
// buffers of 2 KiB in low memory, one queue each way (82574 GbE Controller
// Family Datasheet and PCI/PCI-X Family of Gigabit Ethernet Controllers
// Software Developer's Manual: initialization, receive, transmit, interrupts).
//
// Frames that were received interrupt, and changes of the link; frames that
// were sent do not: their buffers are taken back when one is needed.
// Descriptors are in memory that the card writes, so lengths are checked.
#include "arch/clock.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/heap.h"
#include "kernel/net/card.h"
#include "kernel/net/e1000_registers.h"
#include "kernel/sched/thread.h"
#include "lib/string.h"

#define INTEL 0x8086
#define RX_COUNT 128u
#define TX_COUNT 32u
#define BUFFER_BYTES 2048u
#define BUFFERS_OF_PAGE (PAGE_SIZE / BUFFER_BYTES)
#define RESET_MS 20u
#define TEST_MS 100u // until an interrupt that was asked for arrives
#define GAP_PCI TIPG_OF(10u, 8u, 6u)

static const struct model {
    u16 product;
    bool has_messages; // and the registers marked 82574
    u32 gap;           // between frames (TIPG)
} models[] = {
    { 0x10d3, true, TIPG_OF(8u, 8u, 6u) }, // 82574L
    // Those for copper of the PCI and PCI-X family (its manual, table 5-1).
    { 0x100e, false, GAP_PCI }, // 82540EM, 0x1015 in notebooks
    { 0x1015, false, GAP_PCI },
    { 0x1017, false, GAP_PCI }, // 82540EP
    { 0x1016, false, GAP_PCI },
    { 0x1013, false, GAP_PCI }, // 82541EI
    { 0x1018, false, GAP_PCI },
    { 0x1076, false, GAP_PCI }, // 82541GI
    { 0x1077, false, GAP_PCI },
    { 0x107c, false, GAP_PCI }, // 82541PI
    { 0x1078, false, GAP_PCI }, // 82541ER
    { 0x1008, false, GAP_PCI }, // 82544EI
    { 0x100c, false, GAP_PCI }, // 82544GC
    { 0x100d, false, GAP_PCI },
    { 0x100f, false, GAP_PCI }, // 82545EM
    { 0x1026, false, GAP_PCI }, // 82545GM
    { 0x1010, false, GAP_PCI }, // 82546EB
    { 0x1079, false, GAP_PCI }, // 82546GB
    { 0x1019, false, GAP_PCI }, // 82547EI
    { 0x1075, false, GAP_PCI }, // 82547GI
};

struct ring {
    volatile struct e1000_descriptor *at;
    u32 count, next;
    u8 *buffers[RX_COUNT];
};

struct e1000 {
    volatile u32 *registers;
    const struct model *model;
    u32 interrupts;
    bool running;
    struct ring rx, tx;
};

static u32 reg_read(const struct e1000 *e, u32 reg)
{
    return e->registers[reg / 4];
}

static void reg_write(struct e1000 *e, u32 reg, u32 value)
{
    e->registers[reg / 4] = value;
}

static void sleep_ms(u32 ms)
{
    thread_sleep_until(clock_now_ns() + ms * NSEC_PER_MSEC,
                       WAIT_UNINTERRUPTIBLE);
}

static const struct model *model_of(const struct pci_function *f)
{
    for (u32 i = 0; i < ARRAY_SIZE(models); i++) {
        if (f->vendor == INTEL && f->product == models[i].product)
            return &models[i];
    }
    return NULL;
}

static bool knows(const struct pci_function *f)
{
    return model_of(f) != NULL;
}

// --- start

static const char *map_registers(struct net_card *c, struct e1000 *e)
{
    struct pci_memory m;
    if (!pci_memory(&c->pci, 0, &m))
        return "it has no address";
    if (m.size < E1000_REGISTERS)
        return "its registers take too little memory";
    e->registers = map_device(m.base, E1000_REGISTERS);
    return e->registers ? NULL : "its registers cannot be mapped";
}

// The reset reads the card's address from its EEPROM.
static const char *reset(struct e1000 *e)
{
    reg_write(e, REG_IMC, ~0u);
    reg_write(e, REG_RCTL, 0);
    reg_write(e, REG_TCTL, 0);
    reg_write(e, REG_CTRL, reg_read(e, REG_CTRL) | CTRL_RST);
    sleep_ms(RESET_MS);
    if (reg_read(e, REG_CTRL) & CTRL_RST)
        return "its reset does not end";
    reg_write(e, REG_IMC, ~0u);
    return NULL;
}

static const char *read_address(struct net_card *c, const struct e1000 *e)
{
    u32 low = reg_read(e, REG_RAL), high = reg_read(e, REG_RAH);
    for (u32 i = 0; i < NET_MAC_BYTES; i++)
        c->mac[i] = (u8)(i < 4 ? low >> 8 * i : high >> 8 * (i - 4));
    if (!(high & RAH_VALID) || !(low | (high & 0xffff)) || c->mac[0] & 1)
        return "it has no Ethernet address";
    return NULL;
}

static bool ring_init(struct ring *r, u32 count)
{
    r->count = count;
    r->at = page_alloc(FRAME_BUFFER);
    if (!r->at)
        return false;
    memset((void *)r->at, 0, PAGE_SIZE);
    for (u32 i = 0; i < count; i++) {
        u8 *page = r->buffers[i / BUFFERS_OF_PAGE * BUFFERS_OF_PAGE];
        if (i % BUFFERS_OF_PAGE == 0)
            page = page_alloc(FRAME_BUFFER);
        if (!page)
            return false;
        r->buffers[i] = page + i % BUFFERS_OF_PAGE * BUFFER_BYTES;
        r->at[i].address = (u32)virt_to_phys(r->buffers[i]);
    }
    return true;
}
_Static_assert(RX_COUNT * sizeof(struct e1000_descriptor) <= PAGE_SIZE &&
                   TX_COUNT <= RX_COUNT && BUFFER_BYTES >= NET_FRAME_MAX,
               "a ring is a page");

static void ring_free(struct ring *r)
{
    for (u32 i = 0; i < r->count; i += BUFFERS_OF_PAGE) {
        if (r->buffers[i])
            page_free(r->buffers[i]);
    }
    if (r->at)
        page_free((void *)r->at);
    *r = (struct ring){ .count = 0 };
}

static void program_receiver(struct e1000 *e)
{
    for (u32 i = 0; i < MTA_WORDS; i++)
        reg_write(e, REG_MTA + 4 * i, 0);
    reg_write(e, REG_RDBAL, (u32)virt_to_phys((void *)e->rx.at));
    reg_write(e, REG_RDBAH, 0);
    reg_write(e, REG_RDLEN, RX_COUNT * sizeof(struct e1000_descriptor));
    reg_write(e, REG_RDH, 0);
    reg_write(e, REG_RDTR, 0);
    reg_write(e, REG_RCTL, RCTL_ENABLE | RCTL_BROADCAST | RCTL_STRIP_CRC);
    reg_write(e, REG_RDT, RX_COUNT - 1); // one is never the card's
}

static void program_sender(struct e1000 *e)
{
    bool new = e->model->has_messages;
    reg_write(e, REG_TDBAL, (u32)virt_to_phys((void *)e->tx.at));
    reg_write(e, REG_TDBAH, 0);
    reg_write(e, REG_TDLEN, TX_COUNT * sizeof(struct e1000_descriptor));
    reg_write(e, REG_TDH, 0);
    reg_write(e, REG_TDT, 0);
    reg_write(e, REG_TIPG, e->model->gap);
    if (new)
        reg_write(e, REG_TXDCTL, reg_read(e, REG_TXDCTL) | TXDCTL_MUST_BE_SET);
    reg_write(e, REG_TCTL,
              TCTL_ENABLE | TCTL_PAD | TCTL_COLLISIONS | TCTL_DISTANCE |
                  (new ? TCTL_MULTIPLE_READS : 0));
}

static void program_link(struct e1000 *e)
{
    u32 control = reg_read(e, REG_CTRL);
    control &= ~(CTRL_ILOS | CTRL_FORCE_SPEED | CTRL_FORCE_DUPLEX |
                 CTRL_RECEIVE_PAUSE | CTRL_SEND_PAUSE | CTRL_PHY_RST);
    reg_write(e, REG_CTRL, control | CTRL_SLU | CTRL_ASDE);
}

static void interrupt(void *arg)
{
    struct net_card *c = arg;
    struct e1000 *e = c->data;
    if (!READ_ONCE(e->running))
        return;
    reg_write(e, REG_ICR, reg_read(e, REG_ICR));
    WRITE_ONCE(e->interrupts, e->interrupts + 1);
    waitq_wake_all(&c->wake);
}

// Interrupts are proved by one that the card is asked for, before they are
// relied on.
static void start_interrupts(struct net_card *c, struct e1000 *e)
{
    c->polled = true;
    WRITE_ONCE(e->running, true);
    if (!e->model->has_messages ||
        pci_register_messages(&c->pci, interrupt, c, c->driver->name))
        return;
    reg_write(e, REG_EIAC, 0);
    reg_write(e, REG_IVAR, IVAR_ALL_TO_0);
    reg_write(e, REG_ITR, ITR_50_US);
    reg_write(e, REG_EITR0, ITR_50_US);
    reg_write(e, REG_ICR, ~0u);
    reg_write(e, REG_IMS,
              CAUSE_LINK | CAUSE_RX_LOW | CAUSE_RX_OVERRUN | CAUSE_RX |
                  CAUSE_RX_QUEUE0 | CAUSE_OTHER);
    reg_write(e, REG_ICS, CAUSE_LINK | CAUSE_OTHER);
    c->polled =
        wait_event(&c->wake, READ_ONCE(e->interrupts), WAIT_UNINTERRUPTIBLE,
                   clock_now_ns() + TEST_MS * NSEC_PER_MSEC) != 0;
    if (c->polled)
        reg_write(e, REG_IMC, ~0u);
}

static void stop(struct net_card *c)
{
    struct e1000 *e = c->data;
    if (!e)
        return;
    WRITE_ONCE(e->running, false);
    if (e->registers) {
        reg_write(e, REG_IMC, ~0u);
        reg_write(e, REG_RCTL, 0);
        reg_write(e, REG_TCTL, 0);
    }
    pci_disable_dma(&c->pci);
}

static const char *start_card(struct net_card *c, struct e1000 *e)
{
    const char *why = map_registers(c, e);
    if (why)
        return why;
    pci_enable(&c->pci);
    why = reset(e);
    if (!why)
        why = read_address(c, e);
    if (why)
        return why;
    if (!ring_init(&e->rx, RX_COUNT) || !ring_init(&e->tx, TX_COUNT))
        return "no memory is left";
    if (e->model->has_messages)
        reg_write(e, REG_CTRL_EXT, reg_read(e, REG_CTRL_EXT) | CTRL_EXT_DRIVER);
    program_link(e);
    program_receiver(e);
    program_sender(e);
    start_interrupts(c, e);
    return NULL;
}

static const char *start(struct net_card *c)
{
    struct e1000 *e = kzalloc(sizeof(*e));
    if (!e)
        return "no memory is left";
    e->model = model_of(&c->pci);
    c->data = e;
    const char *why = start_card(c, e);
    if (why) {
        stop(c);
        ring_free(&e->rx);
        ring_free(&e->tx);
    }
    return why;
}

// --- frames

static u32 link_speed(struct net_card *c)
{
    static const u16 speeds[] = { 10, 100, 1000, 1000 };
    struct e1000 *e = c->data;
    u32 status = reg_read(e, REG_STATUS);
    if (status == ~0u)
        return NET_LINK_GONE;
    c->missed += reg_read(e, REG_MPC);
    return status & STATUS_LINK_UP ? speeds[STATUS_SPEED(status)] : 0;
}

static bool has_frames(const struct net_card *c)
{
    const struct ring *r = &((struct e1000 *)c->data)->rx;
    return r->at[r->next].status & RX_DONE;
}

// Gives the descriptor back to the card.
static void frame_done(struct net_card *c)
{
    struct e1000 *e = c->data;
    struct ring *r = &e->rx;
    r->at[r->next].status = 0;
    barrier();
    reg_write(e, REG_RDT, r->next);
    r->next = (r->next + 1) % RX_COUNT;
}

static const u8 *frame(struct net_card *c, u32 *bytes)
{
    struct ring *r = &((struct e1000 *)c->data)->rx;
    for (u32 i = 0; i < RX_COUNT && has_frames(c); i++) {
        u32 status = r->at[r->next].status;
        *bytes = RX_LENGTH(r->at[r->next].length);
        if (status & RX_END && !RX_ERRORS(status) && *bytes >= NET_FRAME_MIN &&
            *bytes <= NET_FRAME_MAX)
            return r->buffers[r->next];
        c->bad++;
        frame_done(c);
    }
    return NULL;
}

// Head and tail of a full ring would be those of an empty one, so the
// descriptor after this one must be free, too. One that was never used has no
// length.
static u8 *buffer(struct net_card *c)
{
    struct ring *r = &((struct e1000 *)c->data)->tx;
    volatile struct e1000_descriptor *d = &r->at[(r->next + 1) % TX_COUNT];
    return d->length && !(d->status & TX_DONE) ? NULL : r->buffers[r->next];
}

static void send(struct net_card *c, u32 bytes)
{
    struct e1000 *e = c->data;
    struct ring *r = &e->tx;
    assert(bytes >= NET_FRAME_MIN && bytes <= NET_FRAME_MAX);
    r->at[r->next].status = 0;
    r->at[r->next].length = bytes | TX_END | TX_ADD_CRC | TX_REPORT;
    barrier();
    r->next = (r->next + 1) % TX_COUNT;
    reg_write(e, REG_TDT, r->next);
}

static struct net_driver e1000_driver = {
    .name = "e1000",
    .knows = knows,
    .start = start,
    .stop = stop,
    .link = link_speed,
    .has_frames = has_frames,
    .frame = frame,
    .frame_done = frame_done,
    .buffer = buffer,
    .send = send,
};
NET_DRIVER(e1000_driver);
