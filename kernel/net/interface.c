// lwIP's network interface (struct netif) over the card; see interface.h.
#include "kernel/net/interface.h"

#include "kernel/base/log.h"
#include "kernel/net/frame.h"
#include "kernel/net/net.h"
#include "kernel/net/udp.h"
#include "lib/format.h"
#include "lib/string.h"

#include <lwip/dhcp.h>
#include <lwip/etharp.h>
#include <lwip/netif.h>
#include <lwip/stats.h>
#include <netif/ethernet.h>

#define MTU 1500
#define TEXT 16 // bytes of an address as text

static struct net_card *card;
static struct netif interface;
static u32 link_speed;
static u64 in_packets, in_bytes, out_packets, out_bytes;
static u64 no_memory, no_room;

static const char *address_text(const ip4_addr_t *a, char *text)
{
    format(text, TEXT, "%u.%u.%u.%u", ip4_addr1(a), ip4_addr2(a), ip4_addr3(a),
           ip4_addr4(a));
    return text;
}

static err_t output(struct netif *netif UNUSED, struct pbuf *p)
{
    if (p->tot_len > NET_FRAME_MAX || p->tot_len < NET_FRAME_MIN)
        return ERR_BUF;
    u8 *buffer = card->driver->buffer(card);
    if (!buffer) {
        no_room++;
        return ERR_WOULDBLOCK;
    }
    u32 bytes = pbuf_copy_partial(p, buffer, p->tot_len, 0);
    card->driver->send(card, bytes);
    out_packets++;
    out_bytes += bytes;
    return ERR_OK;
}

static void address_changed(struct netif *netif)
{
    static ip4_addr_t said;
    char address[TEXT], gateway[TEXT];
    const ip4_addr_t *now = netif_ip4_addr(netif);
    if (ip4_addr_cmp(&said, now))
        return;
    said = *now;
    if (ip4_addr_isany_val(*now)) {
        log_printf("net: the address is given up\n");
        return;
    }
    u32 bits =
        (u32)__builtin_popcount(ip4_addr_get_u32(netif_ip4_netmask(netif)));
    log_printf("net: address %s/%u, gateway %s\n", address_text(now, address),
               bits, address_text(netif_ip4_gw(netif), gateway));
}

static err_t init(struct netif *netif)
{
    netif->name[0] = 'e';
    netif->name[1] = 'n';
    netif->hostname = "strobe";
    netif->mtu = MTU;
    netif->hwaddr_len = NET_MAC_BYTES;
    memcpy(netif->hwaddr, card->mac, NET_MAC_BYTES);
    netif->flags =
        NETIF_FLAG_BROADCAST | NETIF_FLAG_ETHARP | NETIF_FLAG_ETHERNET;
    netif->output = etharp_output;
    netif->linkoutput = output;
    return ERR_OK;
}

void interface_add(struct net_card *c, const struct net_config *config)
{
    mutex_assert_held(&net_lock);
    card = c;
    ip4_addr_t address = { lwip_htonl(config->address) };
    ip4_addr_t mask = { lwip_htonl(config->mask) };
    ip4_addr_t gateway = { lwip_htonl(config->gateway) };
    netif_add(&interface, &address, &mask, &gateway, NULL, init,
              ethernet_input);
    netif_set_default(&interface);
    netif_set_status_callback(&interface, address_changed);
    netif_set_up(&interface);
    if (config->mode == NET_DHCP && dhcp_start(&interface) != ERR_OK)
        log_printf("net: no memory is left for DHCP\n");
}

bool interface_link(u32 speed)
{
    mutex_assert_held(&net_lock);
    bool gone = speed == NET_LINK_GONE;
    if (gone)
        speed = 0;
    if (speed == link_speed)
        return !gone;
    link_speed = speed;
    if (speed) {
        log_printf("net: link up, %u Mbit/s\n", speed);
        netif_set_link_up(&interface);
    } else {
        log_printf("net: link down\n");
        netif_set_link_down(&interface);
    }
    return !gone;
}

static void receive(const u8 *frame, u32 bytes)
{
    struct pbuf *p = frame_to_pbuf(frame, bytes);
    in_packets++;
    in_bytes += bytes;
    if (!p) {
        no_memory++;
        return;
    }
    if (interface.input(p, &interface) != ERR_OK)
        pbuf_free(p);
}

bool interface_receive(u32 most)
{
    mutex_assert_held(&net_lock);
    u32 bytes;
    for (u32 i = 0; i < most; i++) {
        const u8 *frame = card->driver->frame(card, &bytes);
        if (!frame)
            return false;
        receive(frame, bytes);
        card->driver->frame_done(card);
    }
    return true;
}

// lwIP counts each packet that it drops in `drop`, most also by reason; wrong
// sums and lengths of ICMP by reason alone.
static void report_drops(struct sysinfo_net *out)
{
    const struct stats_proto *of[] = { &lwip_stats.link, &lwip_stats.etharp,
                                       &lwip_stats.ip, &lwip_stats.udp };
    out->no_memory = no_memory;
    for (u32 i = 0; i < ARRAY_SIZE(of); i++) {
        out->checksum += of[i]->chkerr;
        out->malformed += of[i]->lenerr;
        out->unwanted += of[i]->drop - of[i]->chkerr - of[i]->lenerr;
        out->no_memory += of[i]->memerr;
    }
    out->checksum += lwip_stats.icmp.chkerr;
    out->malformed += lwip_stats.icmp.lenerr;
    out->unwanted += lwip_stats.icmp.drop;
    out->no_socket = lwip_stats.udp.proterr;
    out->unwanted -= out->no_socket;
    out->queue_full = udp_socket_lost();
    out->no_room = no_room;
}

static const char *state(void)
{
    if (!card)
        return "starting";
    if (!link_speed)
        return "no link";
    return ip4_addr_isany_val(*netif_ip4_addr(&interface))
               ? "asking for an address"
               : "ready";
}

void interface_report(struct sysinfo_net *out)
{
    mutex_assert_held(&net_lock);
    const u8 *m = interface.hwaddr;
    strlcpy(out->state, state(), sizeof(out->state));
    format(out->mac, sizeof(out->mac), "%02x:%02x:%02x:%02x:%02x:%02x", m[0],
           m[1], m[2], m[3], m[4], m[5]);
    address_text(netif_ip4_addr(&interface), out->address);
    address_text(netif_ip4_netmask(&interface), out->mask);
    address_text(netif_ip4_gw(&interface), out->gateway);
    out->link = link_speed;
    out->in_packets = in_packets;
    out->in_bytes = in_bytes;
    out->out_packets = out_packets;
    out->out_bytes = out_bytes;
    report_drops(out);
}
