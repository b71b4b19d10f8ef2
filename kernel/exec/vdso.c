#include "kernel/exec/vdso.h"

#include "arch/vdso.h"
#include "kernel/base/log.h"
#include "kernel/mm/aspace.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/shared.h"
#include "kernel/time/time_page.h"
#include "kernel/time/timehands.h"

#define PAGES_MAX (VDSO_ROOM / PAGE_SIZE)

static struct shared_pages *pages; // the time page, then the image's
static u32 page_count;

void vdso_init(void)
{
    const void *list[PAGES_MAX] = { &time_page };
    page_count = 1 + (u32)(vdso_end - vdso_start) / PAGE_SIZE;
    assert(page_count <= PAGES_MAX);
    for (u32 i = 1; i < page_count; i++)
        list[i] = vdso_start + (i - 1) * PAGE_SIZE;
    pages = shared_pages_of_kernel(list, page_count);
    if (!pages)
        boot_lacks_memory("the vDSO");
}

int vdso_map(struct aspace *as)
{
    assert_checked(page_count >= 2);
    u32 image = VDSO_END - (page_count - 1) * PAGE_SIZE;
    int err = aspace_map_shared(as, image - PAGE_SIZE, PAGE_SIZE, PROT_R,
                                AREA_NO_WRITE, pages, 0);
    if (!err)
        err = aspace_map_shared(as, image, VDSO_END - image, PROT_R | PROT_X,
                                AREA_NO_WRITE, pages, PAGE_SIZE);
    as->vdso = image;
    return err;
}

const char *vdso_area_name(const struct area *a)
{
    if (!a->shared || a->shared != pages)
        return NULL;
    return a->offset ? "[vdso]" : "[vvar]";
}
