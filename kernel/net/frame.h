// A frame from a card as lwIP takes it. Pure code.
#pragma once

#include "lib/types.h"

struct pbuf;

// A copy in lwIP's buffer; NULL: no memory. lwIP (2.1.3, etharp_input) reads a
// whole ARP packet before it looks at the length: a frame that is shorter than
// Ethernet's least is filled up with zeros, as senders have to (IEEE
// 802.3, 3.2.8).
struct pbuf *frame_to_pbuf(const u8 *frame, u32 bytes);
