// frameless.c, of whose code nothing is known (Makefile).
#include "frameless.c"
