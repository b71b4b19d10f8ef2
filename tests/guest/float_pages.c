// 80-bit floating-point stores and loads that cross a page boundary, at each
// offset. No two neighbouring pages are neighbours in physical memory. If the
// kernel found at boot that the emulator stores them into a wrong page, the
// test stores nothing, because it would overwrite other memory.
#include "test.h"

#include <sys/klog.h>
#include <sys/mman.h>

#define PAGES 8
#define PAGE 4096
#define SIZE 10

#define READ_ALL 3 // syslog(2)

static bool kernel_warns(void)
{
    static char log[1 << 16];
    int n = klogctl(READ_ALL, log, sizeof(log) - 1);
    log[n > 0 ? n : 0] = 0;
    return strstr(log, "cross a page into a wrong page");
}

static void try_at(unsigned char *at)
{
    char want[SIZE], back[SIZE];
    __asm__ volatile("fldpi; fstpt %0" : "=m"(want));
    __asm__ volatile("fldpi; fstpt %0" : "=m"(*(char(*)[SIZE])at));
    check(!memcmp(at, want, SIZE));
    memcpy(at, want, SIZE);
    __asm__ volatile("fldt %1; fstpt %0"
                     : "=m"(back)
                     : "m"(*(const char(*)[SIZE])at));
    check(!memcmp(back, want, SIZE));
    memset(at, 0, SIZE);
}

int main(void)
{
    if (kernel_warns()) {
        ok("skipped: the kernel warns that this emulator stores them wrongly");
        return 0;
    }
    unsigned char *p = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(p != MAP_FAILED);
    for (int i = PAGES - 1; i >= 0; i -= 2) // every other page gets its frame
        p[i * PAGE] = 0;
    for (int i = PAGES - 2; i >= 0; i -= 2)
        p[i * PAGE] = 0;
    for (int i = 1; i < PAGES; i++) {
        for (int before = 1; before < SIZE; before++)
            try_at(p + i * PAGE - before);
    }
    ok("80 bits across pages");
    return 0;
}
