// frameless.c without call frame information (Makefile).
#include "frameless.c"
