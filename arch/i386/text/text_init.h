// Start-up of arch/i386/text.
#pragma once

// Replaces NOPL at all sites if the CPU does not know it. Nothing before it has
// a site.
void text_init(void);
