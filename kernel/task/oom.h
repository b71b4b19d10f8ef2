// Memory is out: which task ends for it. memory_is_out (arch/trap.h) is here.
#pragma once

#define OOM_PATIENCE (2 * NSEC_PER_SEC)
