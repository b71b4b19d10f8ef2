// Parsing of net=; see config.h.
#include "kernel/net/config.h"
#include "lib/string.h"

#define BITS_LEAST 1u
#define BITS_MOST 30u // of a network that has two addresses for machines
#define CLASS_A(address) ((address) >> 24)
#define LOOPBACK 127u
#define MULTICAST 224u // and all above it (RFC 1112, section 4; RFC 1122)

// A decimal number up to `most`, without leading zeros.
static bool number(const char **at, u32 most, u32 *out)
{
    const char *p = *at;
    u32 value = 0;
    if (*p < '0' || *p > '9' || (*p == '0' && p[1] >= '0' && p[1] <= '9'))
        return false;
    while (*p >= '0' && *p <= '9' && value <= most)
        value = value * 10 + (u32)(*p++ - '0');
    *at = p;
    *out = value;
    return value <= most;
}

static bool address(const char **at, u32 *out)
{
    u32 value = 0, byte;
    for (u32 i = 0; i < 4; i++) {
        if (i && *(*at)++ != '.')
            return false;
        if (!number(at, 255, &byte))
            return false;
        value = value << 8 | byte;
    }
    *out = value;
    return true;
}

// Whether a machine may have this address in its network.
static bool is_machine(u32 ip, u32 mask)
{
    return CLASS_A(ip) != 0 && CLASS_A(ip) != LOOPBACK &&
           CLASS_A(ip) < MULTICAST && (ip & ~mask) != 0 &&
           (ip & ~mask) != ~mask;
}

static const char *parse_static(const char *at, struct net_config *c)
{
    u32 bits;
    if (!address(&at, &c->address) || *at++ != '/')
        return "it is not off, dhcp, ADDRESS/BITS or "
               "ADDRESS/BITS,GATEWAY";
    if (!number(&at, BITS_MOST, &bits) || bits < BITS_LEAST)
        return "the network's bits are not a number from 1 to 30";
    c->mask = ~0u << (32 - bits);
    if (!is_machine(c->address, c->mask))
        return "its address cannot be a machine's";
    if (*at == '\0')
        return NULL;
    if (*at++ != ',' || !address(&at, &c->gateway) || *at)
        return "what follows the bits is not ,GATEWAY";
    if (((c->gateway ^ c->address) & c->mask) ||
        !is_machine(c->gateway, c->mask) || c->gateway == c->address)
        return "the gateway is not another machine of that network";
    return NULL;
}

const char *net_config_parse(const char *text, struct net_config *out)
{
    *out = (struct net_config){ .mode = NET_OFF };
    if (strcmp(text, "off") == 0)
        return NULL;
    if (!*text || strcmp(text, "dhcp") == 0) {
        out->mode = NET_DHCP;
        return NULL;
    }
    struct net_config c = { .mode = NET_STATIC };
    const char *why = parse_static(text, &c);
    if (!why)
        *out = c;
    return why;
}
