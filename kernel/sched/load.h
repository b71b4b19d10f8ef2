// The load averages, kept by the kernel thread kload.
#pragma once

void load_start(void);
