// lwIP's options: IPv4 over Ethernet, ARP, ICMP, UDP, and DHCP's client. All
// that is not named here has its default (lwip/opt.h).
#pragma once

// One caller at a time, with net_lock held; no threads of its own.
#define NO_SYS 1
#define SYS_LIGHTWEIGHT_PROT 0
#define LWIP_NETCONN 0
#define LWIP_SOCKET 0

// Memory is the kernel's heap: nothing is taken while nobody uses the network.
#define MEM_LIBC_MALLOC 1
#define MEMP_MEM_MALLOC 1
#define MEM_ALIGNMENT 4
#define mem_clib_malloc kmalloc
#define mem_clib_calloc(n, size) kzalloc((n) * (size))
#define mem_clib_free kfree

// kernel/net/timers.c
#define LWIP_TIMERS_CUSTOM 1

#define LWIP_TCP 0
#define LWIP_RAW 0
#define LWIP_DHCP 1
// lwIP 2.2 would ask by another file, that 2.1 (Debian 12) has not, whether the
// address is in use.
#define LWIP_DHCP_DOES_ACD_CHECK 0
// Frames that are larger than a card's are neither sent in parts nor put
// together: nothing that Strobe does needs it.
#define IP_FRAG 0
#define IP_REASSEMBLY 0
#define IP_FORWARD 0
#define LWIP_ICMP 1
#define LWIP_BROADCAST_PING 0
#define ARP_QUEUEING 1
#define SO_REUSE 1

// 127.0.0.1; what is sent to it waits until netif_poll.
#define LWIP_HAVE_LOOPIF 1
#define LWIP_NETIF_LOOPBACK 1
#define LWIP_LOOPBACK_MAX_PBUFS 64
#define LWIP_NETIF_HOSTNAME 1
#define LWIP_NETIF_STATUS_CALLBACK 1

#define LWIP_STATS 1
#define LWIP_STATS_LARGE 1
#define MEM_STATS 0
#define MEMP_STATS 0
#define SYS_STATS 0
