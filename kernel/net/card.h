// Network cards: what a driver promises.
//
// One card is used. `start` and `stop` are called by the net thread and may
// sleep; has_frames by it, without a lock; all others with net_lock held.
// Interrupts wake `card.wake` and do nothing else.
#pragma once

#include "arch/pci.h"
#include "kernel/sync/waitq.h"
#include "lib/set.h"

#define NET_MAC_BYTES 6u
#define NET_FRAME_MAX 1514u // Ethernet's header and 1500 bytes; no checksum
#define NET_FRAME_MIN 14u
#define NET_LINK_GONE (~0u)

struct net_card;

struct net_driver {
    const char *name;
    bool (*knows)(const struct pci_function *f);
    // NULL: it receives and sends, and c->mac and c->polled are set. Else the
    // reason why it cannot be used.
    const char *(*start)(struct net_card *c);
    void (*stop)(struct net_card *c); // it accesses no memory any more
    // The link's Mbit/s; 0: no link; NET_LINK_GONE: the card was removed.
    u32 (*link)(struct net_card *c);
    // The frame that was received first, until frame_done; NULL: there is none.
    bool (*has_frames)(const struct net_card *c);
    const u8 *(*frame)(struct net_card *c, u32 *bytes);
    void (*frame_done)(struct net_card *c);
    // Room for a frame of NET_FRAME_MAX bytes; NULL: all are being sent.
    u8 *(*buffer)(struct net_card *c);
    void (*send)(struct net_card *c, u32 bytes); // what is in the buffer
};
#define NET_DRIVER(d) LINKER_SET_ADD(net_drivers, d)

struct net_card {
    const struct net_driver *driver;
    struct pci_function pci;
    u8 mac[NET_MAC_BYTES];
    bool polled; // no interrupts arrive
    struct waitq wake;
    void *data; // the driver's
    u32 missed; // frames for which there was no room in the ring
    u32 bad;    // frames that were damaged, or longer than NET_FRAME_MAX
};
