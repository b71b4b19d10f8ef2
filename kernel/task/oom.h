// The out-of-memory killer. Its entry is memory_is_out (arch/trap.h).
#pragma once

#define OOM_PATIENCE (2 * NSEC_PER_SEC)
