// The card's thread, and lwIP's interface to it; see net.h and card.h.
//
// The thread takes frames from the card and calls lwIP's timers; senders are in
// their own threads. All hold net_lock. Frames are taken in batches with a
// pause after each, so that a flood costs a part of one CPU; what comes
// meanwhile and finds no room in the ring is counted as missed.
#include "kernel/net/net.h"

#include "arch/clock.h"
#include "kernel/base/cmdline.h"
#include "kernel/base/log.h"
#include "kernel/base/providers.h"
#include "kernel/fs/devfs.h"
#include "kernel/mm/heap.h"
#include "kernel/net/card.h"
#include "kernel/net/config.h"
#include "kernel/net/interface.h"
#include "kernel/sched/thread.h"
#include "lib/format.h"
#include "lib/string.h"

#include <lwip/init.h>
#include <lwip/netif.h>
#include <lwip/timeouts.h>

KERNEL_ARG(net, "net=dhcp, or net=ADDRESS/BITS[,GATEWAY]: uses the network "
                "card (net=off: does not)");

#define CLASS_ETHERNET 0x020000u
#define BATCH 128u
#define PAUSE_NS NSEC_PER_MSEC
#define POLL_NS (8 * NSEC_PER_MSEC)

struct mutex net_lock = MUTEX_INIT(net_lock, "network");
static struct net_config config;
static struct net_card *card; // NULL: none is used
static const char *failure;   // why not

u32 net_random(void)
{
    u32 value;
    random_bytes(&value, sizeof(value));
    return value;
}

u32 sys_now(void)
{
    return (u32)(clock_now_ns() / NSEC_PER_MSEC);
}

void net_stack_start(void)
{
    static bool started;
    mutex_assert_held(&net_lock);
    if (!started)
        lwip_init();
    started = true;
}

void net_deliver_own(void)
{
    mutex_assert_held(&net_lock);
    netif_poll_all();
}

// --- the thread

static u64 next_deadline(const struct net_card *c)
{
    mutex_assert_held(&net_lock);
    u64 now = clock_now_ns();
    u64 next = now + sys_timeouts_sleeptime() * NSEC_PER_MSEC;
    return c->polled ? MIN(next, now + POLL_NS) : next;
}

// False: the card has gone.
static bool serve_once(struct net_card *c, u64 *wait_until)
{
    mutex_lock(&net_lock);
    bool alive = interface_link(c->driver->link(c));
    bool more = alive && interface_receive(BATCH);
    sys_check_timeouts();
    *wait_until = next_deadline(c);
    mutex_unlock(&net_lock);
    if (more)
        thread_sleep_until(clock_now_ns() + PAUSE_NS, WAIT_UNINTERRUPTIBLE);
    return alive;
}

static void give_up(struct net_card *c, const char *why)
{
    c->driver->stop(c);
    mutex_lock(&net_lock);
    failure = why;
    mutex_unlock(&net_lock);
    log_printf("net: %s at %02x:%02x.%u is not used: %s\n", c->driver->name,
               c->pci.bus, c->pci.device, c->pci.function, why);
}

// A change of the link interrupts; a card that is gone does not, and is found
// at the next timer of lwIP.
static void net_thread(void *arg)
{
    struct net_card *c = arg;
    u64 wait_until = 0;
    const char *why = c->driver->start(c);
    if (why) {
        give_up(c, why);
        return;
    }
    log_printf("net: %s %04x:%04x at %02x:%02x.%u, "
               "%02x:%02x:%02x:%02x:%02x:%02x, %s\n",
               c->driver->name, c->pci.vendor, c->pci.product, c->pci.bus,
               c->pci.device, c->pci.function, c->mac[0], c->mac[1], c->mac[2],
               c->mac[3], c->mac[4], c->mac[5],
               c->polled ? "no interrupts: polled every 8 ms" : "interrupts");
    mutex_lock(&net_lock);
    net_stack_start();
    interface_add(c, &config);
    mutex_unlock(&net_lock);
    while (serve_once(c, &wait_until))
        wait_event(&c->wake, c->driver->has_frames(c), WAIT_UNINTERRUPTIBLE,
                   wait_until);
    give_up(c, "it does not answer any more");
}

// --- start

static const struct net_driver *driver_of(const struct pci_function *f)
{
    LINKER_SET_FOR_EACH(const struct net_driver, d, net_drivers) {
        if ((*d)->knows(f))
            return *d;
    }
    return NULL;
}

static void found(const struct pci_function *f, void *arg UNUSED)
{
    const struct net_driver *driver = driver_of(f);
    if (!driver || card) {
        log_printf("net: %04x:%04x at %02x:%02x.%u is not used: %s\n",
                   f->vendor, f->product, f->bus, f->device, f->function,
                   card ? "another card is" : "there is no driver for it");
        return;
    }
    struct net_card *c = kzalloc(sizeof(*c));
    if (!c)
        return;
    c->driver = driver;
    c->pci = *f;
    waitq_init(&c->wake, "net");
    card = c;
}

void net_start(void)
{
    if (!arg_net.present)
        return;
    const char *why = net_config_parse(arg_net.value, &config);
    if (why)
        log_printf("warning: net=%s is ignored: %s\n", arg_net.value, why);
    if (config.mode == NET_OFF)
        return;
    pci_each(CLASS_ETHERNET, found, NULL);
    if (!card)
        log_printf("net: there is no network card that can be used\n");
    else if (kthread_create("net", net_thread, card, NULL))
        log_printf("net: no memory is left for its thread\n");
}

// --- system.net

bool net_report(struct sysinfo_net *out)
{
    if (!card)
        return false;
    const struct pci_function *f = &card->pci;
    mutex_lock(&net_lock);
    format(out->card, sizeof(out->card), "%s %02x:%02x.%u", card->driver->name,
           f->bus, f->device, f->function);
    out->missed = card->missed;
    out->bad = card->bad;
    interface_report(out);
    if (failure)
        strlcpy(out->state, failure, sizeof(out->state));
    mutex_unlock(&net_lock);
    return true;
}
