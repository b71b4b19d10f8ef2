// The kernel argument net=. Pure code.
#pragma once

#include "lib/types.h"

enum net_mode { NET_OFF, NET_DHCP, NET_STATIC };

struct net_config {
    enum net_mode mode;
    u32 address, mask, gateway; // NET_STATIC; the first byte is the highest
};

// off, dhcp or ADDRESS/BITS[,GATEWAY]; "" (net without a value) is dhcp. NULL,
// or what is wrong with it: then *out is off.
const char *net_config_parse(const char *text, struct net_config *out);
