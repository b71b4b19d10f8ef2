// The network stack as the kernel configures it (kernel/net/lwip), and net=.
//
// Each frame is in memory of exactly its size (60 bytes at least), so that the
// sanitizers find what reads beyond it. The random frames are ones that a
// machine could get, damaged, half of them with sums that are right again.
// link: kernel/net/config.c kernel/net/frame.c kernel/net/timers.c
#include "test.h"

#include <lwip/dhcp.h>
#include <lwip/etharp.h>
#include <lwip/init.h>
#include <lwip/prot/dhcp.h>
#include <lwip/stats.h>
#include <lwip/timeouts.h>
#include <lwip/udp.h>
#include <netif/ethernet.h>

#include "kernel/net/config.h"
#include "kernel/net/frame.h"
#include "tests/host/net_frames.h"

#define FRAMES 60000
#define LIVE_MAX 400 // allocations: ARP's table and queues, DHCP, sockets
#define PORT 7

static u32 now_ms, xid = 0x12345678;
static int live;
static u8 sent[FRAME_MAX];
static u32 sent_bytes, sent_count, got_bytes;
static struct netif card;

// --- what lwIP asks of the kernel

void *kmalloc(size_t size)
{
    live++;
    return malloc(size);
}

void *kzalloc(size_t size)
{
    live++;
    return calloc(1, size);
}

void kfree(void *p)
{
    live -= p != NULL;
    free(p);
}

u32 net_random(void)
{
    return xid;
}

u32 sys_now(void)
{
    return now_ms;
}

// --- frames

static void give(const u8 *f, u32 bytes)
{
    struct pbuf *p = frame_to_pbuf(f, bytes);
    assert_non_null(p);
    if (card.input(p, &card) != ERR_OK)
        pbuf_free(p);
}

// What is sent must have the right lengths and sums, whatever came.
static err_t output(struct netif *n, struct pbuf *p)
{
    (void)n;
    assert_true(p->tot_len >= 42 && p->tot_len <= FRAME_MAX);
    sent_bytes = pbuf_copy_partial(p, sent, p->tot_len, 0);
    sent_count++;
    assert_memory_equal(sent + 6, OUR_MAC, 6);
    if (sent[12] == 8 && sent[13] == 0) {
        u32 total = (u32)sent[16] << 8 | sent[17];
        assert_true(total <= sent_bytes - 14);
        // The answer to a ping has the options that the ping had.
        assert_int_equal(sum(sent + 14, (sent[14] & 15) * 4u, 0), 0);
    }
    return ERR_OK;
}

static err_t init(struct netif *n)
{
    n->mtu = 1500;
    n->hwaddr_len = 6;
    memcpy(n->hwaddr, OUR_MAC, 6);
    n->flags = NETIF_FLAG_BROADCAST | NETIF_FLAG_ETHARP | NETIF_FLAG_ETHERNET;
    n->output = etharp_output;
    n->linkoutput = output;
    return ERR_OK;
}

static void received(void *arg, struct udp_pcb *pcb, struct pbuf *p,
                     const ip_addr_t *from, u16_t port)
{
    (void)arg;
    got_bytes = p->tot_len;
    udp_sendto(pcb, p, from, port);
    pbuf_free(p);
}

static void start(void)
{
    static bool started;
    ip4_addr_t ip, mask, gateway;
    if (started)
        return;
    started = true;
    lwip_init();
    IP4_ADDR(&ip, 10, 0, 0, 2);
    IP4_ADDR(&mask, 255, 255, 255, 0);
    IP4_ADDR(&gateway, 10, 0, 0, 1);
    netif_add(&card, &ip, &mask, &gateway, NULL, init, ethernet_input);
    netif_set_default(&card);
    netif_set_up(&card);
    netif_set_link_up(&card);
    struct udp_pcb *pcb = udp_new();
    assert_int_equal(udp_bind(pcb, IP_ADDR_ANY, PORT), ERR_OK);
    udp_recv(pcb, received, NULL);
}

// --- tests

static void answers(void **state)
{
    (void)state;
    u8 f[FRAME_MAX];
    start();
    give(f, make_arp(f, 1));
    assert_true(sent[13] == 6 && sent[21] == 2);
    assert_memory_equal(sent + 22, OUR_MAC, 6);
    u32 bytes = make_ping(f, 56);
    give(f, bytes);
    assert_int_equal(sent_bytes, bytes);
    assert_true(sent[34] == 0 && sum(sent + 34, bytes - 34, 0) == 0);
    assert_memory_equal(sent + 38, f + 38, bytes - 38);
    give(f, make_udp(f, PORT, "echo", 4));
    assert_true(got_bytes == 4 && memcmp(sent + HEADERS, "echo", 4) == 0);
    assert_int_equal(sent[37], 0); // to the port 4096 that it came from
    give(f, make_udp(f, PORT + 1, "none", 4));
    assert_true(sent[23] == 1 && sent[34] == 3 && sent[35] == 3);
    u32 before = sent_count;
    bytes = make_udp(f, PORT, "wrong", 5);
    f[HEADERS] ^= 1;
    give(f, bytes);
    bytes = make_ping(f, 8);
    f[26] ^= 1;
    give(f, bytes);
    assert_int_equal(sent_count, before);
    assert_int_equal(lwip_stats.udp.chkerr + lwip_stats.ip.chkerr, 2);
}

static u32 draw(u8 *f)
{
    u8 data[1472];
    for (u32 i = 0; i < sizeof(data); i++)
        data[i] = (u8)random_u64();
    switch (random_below(6)) {
    case 0:
        return make_arp(f, 1 + random_below(2));
    case 1:
        return make_ping(f, random_below(1400));
    case 2:
        return make_udp(f, PORT, data, random_below(sizeof(data)));
    case 3:
        return make_udp(f, random_below(100), data, random_below(100));
    case 4:
        return make_dhcp(f, xid, (u8)(2 + random_below(5)));
    default:
        memcpy(f, data, 1472);
        return 14 + random_below(1400);
    }
}

static void damage(u8 *f, u32 *bytes)
{
    u32 changes = random_below(6);
    for (u32 i = 0; i < changes; i++) {
        u32 near = random_below(2) ? MIN(*bytes, 60u) : *bytes;
        f[random_below(near)] = (u8)random_u64();
    }
    if (random_below(4) == 0)
        *bytes = 14 + random_below(*bytes - 13);
    if (random_below(4) == 0)
        memcpy(f, OUR_MAC, 6);
    if (random_below(2))
        mend(f, *bytes);
}

static void random_frames(void **state)
{
    (void)state;
    u8 f[FRAME_MAX];
    start();
    dhcp_start(&card);
    for (u32 i = 0; i < FRAMES; i++) {
        u32 bytes = draw(f);
        damage(f, &bytes);
        give(f, bytes);
        now_ms += random_below(100);
        sys_check_timeouts();
        assert_true(live < LIVE_MAX);
    }
    // It is as well as before.
    dhcp_release_and_stop(&card);
    ip4_addr_t ip, mask, gateway;
    IP4_ADDR(&ip, 10, 0, 0, 2);
    IP4_ADDR(&mask, 255, 255, 255, 0);
    IP4_ADDR(&gateway, 10, 0, 0, 1);
    netif_set_addr(&card, &ip, &mask, &gateway);
    got_bytes = 0;
    give(f, make_arp(f, 1));
    give(f, make_udp(f, PORT, "alive", 5));
    assert_int_equal(got_bytes, 5);
    assert_memory_equal(sent + HEADERS, "alive", 5);
}

// The server offers 10.0.0.2, and nobody else answers to it.
static void dhcp(void **state)
{
    (void)state;
    u8 f[FRAME_MAX];
    start();
    netif_set_addr(&card, IP4_ADDR_ANY4, IP4_ADDR_ANY4, IP4_ADDR_ANY4);
    assert_int_equal(dhcp_start(&card), ERR_OK);
    give(f, make_dhcp(f, xid, 2));
    give(f, make_dhcp(f, xid, 5));
    for (u32 i = 0; i < 100 && ip4_addr_isany(netif_ip4_addr(&card)); i++) {
        now_ms += 100;
        sys_check_timeouts();
    }
    assert_memory_equal(&netif_ip4_addr(&card)->addr, OUR_IP, 4);
    assert_memory_equal(&netif_ip4_gw(&card)->addr, PEER_IP, 4);
    dhcp_release_and_stop(&card);
}

#define IP(a, b, c, d) ((u32)(a) << 24 | (b) << 16 | (c) << 8 | (d))

static void good_config(void **state)
{
    (void)state;
    struct net_config c;
    assert_null(net_config_parse("off", &c));
    assert_int_equal(c.mode, NET_OFF);
    assert_null(net_config_parse("", &c));
    assert_int_equal(c.mode, NET_DHCP);
    assert_null(net_config_parse("dhcp", &c));
    assert_int_equal(c.mode, NET_DHCP);
    assert_null(net_config_parse("192.168.1.20/24,192.168.1.1", &c));
    assert_int_equal(c.mode, NET_STATIC);
    assert_int_equal(c.address, IP(192, 168, 1, 20));
    assert_int_equal(c.mask, 0xffffff00);
    assert_int_equal(c.gateway, IP(192, 168, 1, 1));
    assert_null(net_config_parse("10.0.0.1/30", &c));
    assert_true(c.mask == 0xfffffffc && !c.gateway);
}

static void bad_config(void **state)
{
    (void)state;
    static const char *const texts[] = { "on",
                                         "DHCP",
                                         "dhcp ",
                                         "10.0.0.1",
                                         "10.0.0/8",
                                         "10.0.0.256/8",
                                         "10.0.0.1.2/8",
                                         "10.0.0.1/",
                                         "10.0.0.1/0",
                                         "10.0.0.1/31",
                                         "10.0.0.1/8x",
                                         "10.0.0.1/08",
                                         "010.0.0.1/8",
                                         "10..0.1/8",
                                         "-1.0.0.1/8",
                                         "0.0.0.1/8",
                                         "127.0.0.1/8",
                                         "224.0.0.1/8",
                                         "255.255.255.255/8",
                                         "10.0.0.0/8",
                                         "10.255.255.255/8",
                                         "10.0.0.1/8,",
                                         "10.0.0.1/8,10.0.0.1",
                                         "10.0.0.1/8,11.0.0.2",
                                         "10.0.0.1/8,10.0.0.0",
                                         "10.0.0.1/8,10.0.0.2,",
                                         "10.0.0.1/99999999999999999999",
                                         "99999999999.0.0.1/8",
                                         "/",
                                         "," };
    for (u32 i = 0; i < ARRAY_SIZE(texts); i++) {
        struct net_config c = { .mode = NET_DHCP };
        assert_non_null(net_config_parse(texts[i], &c));
        assert_int_equal(c.mode, NET_OFF);
    }
}

int main(void)
{
    random_init();
    const struct CMUnitTest tests[] = { cmocka_unit_test(good_config),
                                        cmocka_unit_test(bad_config),
                                        cmocka_unit_test(answers),
                                        cmocka_unit_test(random_frames),
                                        cmocka_unit_test(dhcp) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
