// Linux/i386 error numbers, and the restart codes that stay within the kernel.
#pragma once

#define EPERM 1
#define ENOENT 2
#define ESRCH 3
#define EINTR 4
#define EIO 5
#define ENXIO 6
#define E2BIG 7
#define ENOEXEC 8
#define EBADF 9
#define ECHILD 10
#define EAGAIN 11
#define ENOMEM 12
#define EACCES 13
#define EFAULT 14
#define EBUSY 16
#define EEXIST 17
#define EXDEV 18
#define ENODEV 19
#define ENOTDIR 20
#define EISDIR 21
#define EINVAL 22
#define ENFILE 23
#define EMFILE 24
#define ENOTTY 25
#define ETXTBSY 26
#define EFBIG 27
#define ENOSPC 28
#define ESPIPE 29
#define EROFS 30
#define EMLINK 31
#define EPIPE 32
#define EDOM 33
#define ERANGE 34
#define EDEADLK 35
#define ENAMETOOLONG 36
#define ENOLCK 37
#define ENOSYS 38
#define ENOTEMPTY 39
#define ELOOP 40
#define EOVERFLOW 75
#define EUSERS 87
#define ENOTSOCK 88
#define EDESTADDRREQ 89
#define EMSGSIZE 90
#define ENOPROTOOPT 92
#define EPROTONOSUPPORT 93
#define ESOCKTNOSUPPORT 94
#define EOPNOTSUPP 95
#define EAFNOSUPPORT 97
#define EADDRINUSE 98
#define EADDRNOTAVAIL 99
#define ENETUNREACH 101
#define ECONNRESET 104
#define ENOBUFS 105
#define ENOTCONN 107
#define ESHUTDOWN 108
#define ETIMEDOUT 110
#define EDQUOT 122

// A system call's result from -ERRNO_MAX to -1 is an error.
#define ERRNO_MAX 4095

// A signal interrupted the call before it did anything: restart it (without a
// handler, or with SA_RESTART), else the program gets EINTR.
#define ERESTARTSYS 512
// As above, but it is restarted in any case (fork).
#define ERESTARTNOINTR 513
// As above, but with a handler always EINTR (nanosleep, poll, ...).
#define ERESTARTNOHAND 514
