// The card as lwIP sees it: frames in and out, link, address, counts. There is
// one. All with net_lock held.
#pragma once

#include <strobe/sysinfo.h>

#include "kernel/net/card.h"
#include "kernel/net/config.h"

void interface_add(struct net_card *c, const struct net_config *config);
// Tells lwIP, and the log, of a change. False: the card is gone.
bool interface_link(u32 speed);
// Passes up to `most` frames to lwIP. Whether there were as many.
bool interface_receive(u32 most);
// All fields but those of the card itself.
void interface_report(struct sysinfo_net *out);
