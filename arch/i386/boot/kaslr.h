// Random addresses for the kernel's image. On the boot CPU, in this order.
#pragma once

// Moves the image to other addresses, whose page tables are early_map's. When
// it returns it is mapped at the old ones, too, but every address in it is a
// new one; boot.S goes on there. boot_info must be filled.
void kaslr_move(void);
// On the new addresses: gives the old ones back to the direct map.
void kaslr_end(void);
// Logs how many places there were.
void kaslr_report(void);
