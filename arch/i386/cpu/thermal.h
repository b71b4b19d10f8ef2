// Throttling by heat: reported, as it changes what a measurement finds.
#pragma once

// Lets the calling CPU's thermal sensor interrupt it, if there is one that the
// firmware has not kept for itself. After lapic_init_cpu and irq_init; the boot
// CPU first.
void thermal_init_cpu(void);
