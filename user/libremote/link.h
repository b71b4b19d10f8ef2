// What carries datagrams: UDP, or a serial line, as frames of libtransfer.
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "user/libtransfer/frame.h"
#include "user/libtransfer/line.h"

struct link {
    int fd; // POLLIN: call link_take
    bool serial;
    // UDP: who sent the datagram that is being taken, and where to send to.
    struct sockaddr_in from, peer;
    struct line line;
    struct frame_reader reader;
    // Set by the user.
    void (*take)(void *arg, const void *datagram, size_t size);
    void *arg;
};

// Opens a UDP socket at this port, 0: any. Returns -1 and sets errno on
// failure.
int link_open_udp(struct link *l, uint16_t port);
// Errors: those of line_open.
int link_open_serial(struct link *l, const char *path);
// Sends to the peer, or answers `from`. What finds no room is lost.
void link_send(struct link *l, bool to_peer, const void *datagram, size_t size);
// Takes what has come. Returns -1 when the link has failed, and sets errno.
int link_take(struct link *l);
// No bytes came for a while: takes an incomplete frame for a damaged one.
void link_idle(struct link *l);
