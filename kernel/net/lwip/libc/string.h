// What lwIP takes from the C library: the kernel's own.
#pragma once

#include "lib/string.h"
