// What lwIP takes from the C library. Memory: lwIP 2.1 can be told other names
// (lwipopts.h), 2.2 calls these.
#pragma once

#define malloc(size) kmalloc(size)
#define calloc(n, size) kzalloc((n) * (size))
#define free(p) kfree(p)
// The number in an interface's name: one digit, as there are two interfaces.
#define atoi(text) ((text)[0] - '0')
