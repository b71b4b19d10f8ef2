// The path of a received frame: kernel/net/interface.c, lwIP as the kernel
// configures it, kernel/net/udp.c and its sockets, with a card whose frames are
// the input's. What is sent has right lengths and sums, a socket's queue is as
// long as it says, no more drops are counted than packets came, and no memory
// is left when the sockets are closed.
//
// Between inputs all is as at the beginning but for the time, and the numbers
// of ports and packets that lwIP draws next.
// link: kernel/net/frame.c kernel/net/timers.c
#define _GNU_SOURCE
#include <lwip/opt.h>

#include <lwip/dhcp.h>
#include <lwip/etharp.h>
#include <lwip/init.h>
#include <lwip/timeouts.h>
#undef LIST_INIT
#define sigset_t kernel_sigset_t // the C library has one, too
#include "lib/types.h"
size_t strlcpy(char *to, const char *from, size_t size);
#include "kernel/net/interface.c"
#include "kernel/net/udp.c"
#undef HEADERS
#undef sigset_t

#include "host.h"
#include "tests/host/net_frames.h"

#define SOCKETS 4u
#define STEPS 80u
#define MANY_FRAMES 40u // more than a queue holds
#define FIRST_PORT 1u
#define XID 0x12345678u

static struct net_card the_card;
static struct udp_socket *sockets[SOCKETS];
static u8 frame[FRAME_MAX], out_buffer[NET_FRAME_MAX];
static u32 frame_bytes; // 0: none is there
static u32 now_ms, frames_given, datagrams_sent;
static int live;
static u32 allocations_left;
static bool card_full;

struct mutex net_lock;

// --- what it is built on

static bool memory_left(void)
{
    if (allocations_left == ~0u)
        return true;
    allocations_left -= allocations_left > 0;
    return allocations_left > 0;
}

void *kmalloc(size_t size)
{
    void *p = memory_left() ? malloc(size) : NULL;
    live += p != NULL;
    return p;
}

void *kzalloc(size_t size)
{
    void *p = kmalloc(size);
    return p ? memset(p, 0, size) : NULL;
}

void kfree(void *p)
{
    live -= p != NULL;
    free(p);
}

void *slab_alloc(struct slab_cache *c)
{
    return kmalloc(c->object_size);
}

void slab_free(struct slab_cache *c UNUSED, void *p)
{
    kfree(p);
}

void mutex_lock(struct mutex *m)
{
    REQUIRE(!m->owner);
    m->owner = MUTEX_NEW;
}

void mutex_unlock(struct mutex *m)
{
    REQUIRE(m->owner);
    m->owner = NULL;
}

void waitq_init(struct waitq *q, const char *name)
{
    q->name = name;
}

void waitq_wake_all(struct waitq *q)
{
    REQUIRE(q->name);
}

bool charge_current(u32 bytes UNUSED, struct payer **out)
{
    *out = NULL;
    return memory_left();
}

void payer_discharge(struct payer *p UNUSED, u32 bytes UNUSED)
{
}

size_t strlcpy(char *to, const char *from, size_t size)
{
    return (size_t)snprintf(to, size, "%s", from);
}

void log_printf(const char *how, ...)
{
    REQUIRE(strncmp(how, "net: ", 5) == 0);
}

u32 net_random(void)
{
    return XID;
}

u32 sys_now(void)
{
    return now_ms;
}

void net_stack_start(void)
{
    static bool started;
    if (!started)
        lwip_init();
    started = true;
}

void net_deliver_own(void)
{
    mutex_assert_held(&net_lock);
    netif_poll_all();
}

// --- the card

static u8 *given; // until frame_done

static const u8 *card_frame(struct net_card *c UNUSED, u32 *bytes)
{
    *bytes = frame_bytes;
    return given = frame_bytes ? guarded(frame, frame_bytes) : NULL;
}

static void card_frame_done(struct net_card *c UNUSED)
{
    free(given);
    given = NULL;
    frame_bytes = 0;
}

static u8 *card_buffer(struct net_card *c UNUSED)
{
    return card_full ? NULL : out_buffer;
}

static void check_udp(const u8 *ip, u32 header, u32 total)
{
    const u8 *udp = ip + header;
    u32 size = (u32)udp[4] << 8 | udp[5], pseudo = 17 + size;
    REQUIRE(total >= header + 8 && size == total - header);
    for (u32 i = 12; i < 20; i += 2)
        pseudo += (u32)ip[i] << 8 | ip[i + 1];
    REQUIRE((udp[6] | udp[7]) == 0 || sum(udp, size, pseudo) == 0);
}

static void card_send(struct net_card *c UNUSED, u32 bytes)
{
    const u8 *ip = out_buffer + 14;
    REQUIRE(bytes >= 42 && bytes <= NET_FRAME_MAX);
    REQUIRE(memcmp(out_buffer + 6, OUR_MAC, 6) == 0);
    if (out_buffer[12] != 8 || out_buffer[13] != 0)
        return;
    u32 total = (u32)ip[2] << 8 | ip[3], header = (ip[0] & 15) * 4u;
    REQUIRE(ip[0] >> 4 == 4 && header >= 20 && total <= bytes - 14);
    REQUIRE(header <= total && sum(ip, header, 0) == 0);
    if (ip[9] == 17)
        check_udp(ip, header, total);
    memset(out_buffer, 0xa5, sizeof(out_buffer));
}

static const struct net_driver driver = {
    .name = "fuzz",
    .frame = card_frame,
    .frame_done = card_frame_done,
    .buffer = card_buffer,
    .send = card_send,
};

// --- frames

// A DHCP server's answer, whose options are the input's.
static u32 draw_dhcp(struct input *in, u8 *f)
{
    u32 bytes = make_dhcp(f, XID, 2 + take_byte(in) % 5);
    u32 at = HEADERS + 240, n = take_byte(in) % 200;
    if (n & 1) // after the type of the message
        at += 3;
    for (u32 i = 0; i < n && at + i < bytes && in->left; i++)
        f[at + i] = take_byte(in);
    return bytes;
}

static u32 draw_data(struct input *in, u8 *data)
{
    u32 n = take_number(in, 2) % 1473;
    u8 value = take_byte(in);
    for (u32 i = 0; i < n; i++)
        data[i] = (u8)(value + i);
    return n;
}

static u32 draw_frame(struct input *in, u8 *f)
{
    u8 data[1472], kind = take_byte(in);
    u32 bytes;
    switch (kind % 8) {
    case 0:
        return make_arp(f, 1 + (kind >> 3 & 1));
    case 1:
        return make_ping(f, take_number(in, 2) % 1400);
    case 2:
    case 3:
        bytes = draw_data(in, data);
        return make_udp(f, FIRST_PORT + (kind & 8 ? take_byte(in) % 8 : 0),
                        data, bytes);
    case 4:
    case 5:
    case 6:
        return draw_dhcp(in, f);
    default:
        bytes = 14 + take_number(in, 2) % (FRAME_MAX - 13);
        memset(f, kind, bytes);
        return bytes;
    }
}

// Returns how often it comes.
static u32 change_frame(struct input *in, u8 *f, u32 *bytes)
{
    u8 how = take_byte(in);
    for (u32 i = how & 7; i; i--) {
        u32 at = how & 8 ? take_number(in, 2) : take_byte(in) % 64;
        f[at % *bytes] = take_byte(in);
    }
    if (how & 16)
        *bytes = NET_FRAME_MIN + take_number(in, 2) % (*bytes - 13);
    if (how & 32)
        memcpy(f, OUR_MAC, 6);
    if (!(how & 64))
        mend(f, *bytes);
    return how & 128 ? MANY_FRAMES : 1;
}

static void receive_frame(struct input *in)
{
    memset(frame, 0, sizeof(frame));
    u32 bytes = draw_frame(in, frame);
    u32 times = change_frame(in, frame, &bytes);
    for (; times; times--) {
        frame_bytes = bytes;
        frames_given++;
        mutex_lock(&net_lock);
        REQUIRE(interface_receive(1));
        REQUIRE(!interface_receive(1));
        mutex_unlock(&net_lock);
    }
}

// --- sockets

static void check_socket(const struct udp_socket *s)
{
    u32 count = 0, memory = 0;
    const struct datagram *d;
    list_for_each(d, &s->queue, node) {
        REQUIRE(d->bytes <= UDP_BYTES_MAX);
        for (u32 i = 0; i < d->bytes; i++)
            (void)*(volatile const u8 *)(d->data + i);
        count++;
        memory += memory_of(d->bytes);
    }
    REQUIRE(count == s->count && memory == s->queued);
    REQUIRE(memory <= UDP_QUEUE_BYTES);
    REQUIRE(udp_socket_has_datagram(s) == (count > 0));
}

static struct net_address draw_address(struct input *in)
{
    static const u8 some[][4] = { { 10, 0, 0, 2 },   { 10, 0, 0, 1 },
                                  { 127, 0, 0, 1 },  { 0, 0, 0, 0 },
                                  { 10, 0, 0, 255 }, { 255, 255, 255, 255 },
                                  { 224, 0, 0, 1 },  { 192, 168, 1, 1 } };
    struct net_address a;
    u8 how = take_byte(in);
    memcpy(&a.ip, some[how % 8], 4);
    a.port = how >> 3 & 15;
    return a;
}

static void send_datagram(struct input *in, struct udp_socket *s)
{
    static u8 data[65600];
    struct net_address a = draw_address(in);
    u32 bytes = take_number(in, 2);
    bool to_peer = take_byte(in) & 1;
    int err = udp_socket_send(s, to_peer ? NULL : &a, data,
                              bytes % 3 ? bytes % 1600 : bytes);
    REQUIRE(err <= 0);
    datagrams_sent++;
}

static void take_datagram(struct udp_socket *s, bool back)
{
    struct datagram *d = udp_socket_take(s);
    if (d && back)
        udp_socket_put_back(s, d);
    else
        kfree(d);
}

static void close_socket(struct udp_socket **s)
{
    if (*s)
        udp_socket_close(*s);
    *s = NULL;
}

static void use_socket(struct input *in, u8 how)
{
    struct udp_socket **s = &sockets[how % SOCKETS];
    struct net_address a;
    if (!*s) {
        *s = udp_socket_open();
        return;
    }
    switch (how / SOCKETS % 8) {
    case 0:
        close_socket(s);
        return;
    case 1:
        a = draw_address(in);
        udp_socket_name(*s, &a);
        break;
    case 2:
        a = draw_address(in);
        udp_socket_set_peer(*s, how & 0x80 ? NULL : &a);
        break;
    case 3:
        udp_socket_set_option(
            *s, how & 0x80 ? UDP_BROADCAST : UDP_REUSE_ADDRESS, how & 0x40);
        break;
    case 4:
    case 5:
        take_datagram(*s, how & 0x80);
        break;
    default:
        send_datagram(in, *s);
    }
    udp_socket_local(*s, &a);
    udp_socket_peer(*s, &a);
}

// --- all together

static void pass_time(u32 ms)
{
    mutex_lock(&net_lock);
    now_ms += ms;
    sys_check_timeouts();
    mutex_unlock(&net_lock);
}

static void set_link(u32 speed)
{
    mutex_lock(&net_lock);
    interface_link(speed);
    mutex_unlock(&net_lock);
}

// What was counted is at most what came. (Each is a difference of counters.)
static void check_counts(const struct sysinfo_net *before)
{
    struct sysinfo_net r;
    u64 most = frames_given + datagrams_sent;
    memset(&r, 0, sizeof(r));
    mutex_lock(&net_lock);
    interface_report(&r);
    mutex_unlock(&net_lock);
    REQUIRE(memchr(r.address, 0, sizeof(r.address)));
    REQUIRE(r.in_packets - before->in_packets == frames_given);
    REQUIRE(r.checksum - before->checksum <= most);
    REQUIRE(r.malformed - before->malformed <= most);
    REQUIRE(r.unwanted - before->unwanted <= most);
    REQUIRE(r.no_socket - before->no_socket <= most);
}

static void step(struct input *in)
{
    u8 how = take_byte(in);
    switch (how % 16) {
    case 0:
        pass_time(take_number(in, 2) * (how & 16 ? 10 : 1));
        break;
    case 1:
        set_link(how & 16 ? 1000 : how & 32 ? NET_LINK_GONE : 0);
        break;
    case 2:
        allocations_left = how & 16 ? 1u + take_byte(in) % 8 : ~0u;
        break;
    case 3:
        card_full = how & 16;
        break;
    case 4:
    case 5:
    case 6:
    case 7:
        use_socket(in, take_byte(in));
        break;
    default:
        receive_frame(in);
    }
    for (u32 i = 0; i < SOCKETS; i++) {
        if (sockets[i])
            check_socket(sockets[i]);
    }
}

static void begin(bool dhcp)
{
    struct net_config config = { .mode = dhcp ? NET_DHCP : NET_STATIC };
    if (!dhcp) {
        config.address = 0x0a000002;
        config.mask = 0xffffff00;
        config.gateway = 0x0a000001;
    }
    the_card.driver = &driver;
    memcpy(the_card.mac, OUR_MAC, 6);
    allocations_left = ~0u;
    card_full = false;
    frames_given = datagrams_sent = 0;
    mutex_lock(&net_lock);
    net_stack_start();
    sys_timeouts_init();
    memset(&interface, 0, sizeof(interface));
    link_speed = 0;
    interface_add(&the_card, &config);
    interface_link(1000);
    mutex_unlock(&net_lock);
}

// Most frames are for it.
static void open_first(void)
{
    struct net_address any = { 0, FIRST_PORT };
    sockets[0] = udp_socket_open();
    REQUIRE(sockets[0] && udp_socket_name(sockets[0], &any) == 0);
}

static void end(void)
{
    allocations_left = ~0u;
    card_full = false;
    for (u32 i = 0; i < SOCKETS; i++)
        close_socket(&sockets[i]);
    mutex_lock(&net_lock);
    net_deliver_own();
    if (netif_dhcp_data(&interface)) {
        dhcp_release_and_stop(&interface);
        dhcp_cleanup(&interface);
    }
    net_deliver_own(); // what was released at our own address
    etharp_cleanup_netif(&interface);
    netif_remove(&interface);
    mutex_unlock(&net_lock);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
    static int live_before = -1;
    struct input in = { data, size };
    struct sysinfo_net before = { 0 };
    if (live_before < 0) { // lwIP's own timers
        begin(false);
        end();
        live_before = live;
    }
    begin(take_byte(&in) & 1);
    mutex_lock(&net_lock);
    interface_report(&before);
    mutex_unlock(&net_lock);
    open_first();
    for (u32 i = 0; i < STEPS && in.left; i++)
        step(&in);
    check_counts(&before);
    end();
    REQUIRE(live == live_before);
    return 0;
}
