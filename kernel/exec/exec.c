// execve: loads a static ELF32 program (or the interpreter of a #! script) into
// a new address space and drops the old one only then, so that a failure leaves
// the caller unchanged.

#include "arch/sigframe.h"
#include "arch/vdso.h"
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/exec/elf_load.h"
#include "kernel/exec/layout.h"
#include "kernel/exec/vdso.h"
#include "kernel/fs/devfs.h"
#include "kernel/fs/file.h"
#include "kernel/fs/mount.h"
#include "kernel/mm/heap.h"
#include "kernel/task/task.h"
#include "kernel/task/task_ids.h"
#include "kernel/trace/point.h"
#include "lib/elf.h"
#include "lib/string.h"

#define ARG_BYTES_MAX KIB(128) // argv and envp with their pointers: E2BIG
#define STACK_TOP (VDSO_END - VDSO_ROOM) // at most
#define STACK_INITIAL KIB(16)
#define PATH_BYTES 4096u
#define SCRIPT_DEPTH_MAX 4
#define SCRIPT_LINE_MAX 256

_Static_assert(STACK_TOP % PAGE_SIZE == 0 && STACK_INITIAL % PAGE_SIZE == 0,
               "mapped by pages");
_Static_assert(SCRIPT_LINE_MAX <= PATH_BYTES, "an interpreter's path");

// Strings of argv and envp one after another, as they will be on the stack.
struct strings {
    char *bytes;
    u32 size, capacity;
    u32 argc, envc;
};

static int reserve(struct strings *s, u32 room)
{
    assert_checked(s->size <= s->capacity);
    if (s->size + room > ARG_BYTES_MAX)
        return -E2BIG;
    if (s->size + room <= s->capacity)
        return 0;
    u32 capacity = MAX(s->capacity, KIB(2));
    while (capacity < s->size + room)
        capacity *= 2;
    char *bytes = kmalloc(capacity);
    if (!bytes)
        return -ENOMEM;
    memcpy(bytes, s->bytes, s->size);
    kfree(s->bytes);
    s->bytes = bytes;
    s->capacity = capacity;
    return 0;
}

static int add_user_string(struct strings *s, u32 addr)
{
    assert_checked(s->size <= s->capacity && s->capacity <= ARG_BYTES_MAX);
    for (;;) {
        u32 room = s->capacity - s->size;
        int n = room ? copy_string_from_user(s->bytes + s->size, addr, room)
                     : -ENAMETOOLONG;
        if (n >= 0) {
            s->size += (u32)n + 1;
            return 0;
        }
        if (n != -ENAMETOOLONG)
            return n;
        if (s->capacity >= ARG_BYTES_MAX)
            return -E2BIG;
        int err = reserve(s, room + 1);
        if (err)
            return err;
    }
}

static int add_vector(struct strings *s, u32 vector, u32 *count)
{
    *count = 0;
    if (!vector)
        return 0;
    for (;; vector += 4) {
        u32 addr;
        if (user_load_u32(vector, &addr))
            return -EFAULT;
        if (!addr)
            return 0;
        int err = add_user_string(s, addr);
        if (err)
            return err;
        if (++*count * 4 + s->size > ARG_BYTES_MAX)
            return -E2BIG;
    }
}

static int collect(struct strings *s, const char *path, u32 argv, u32 envp)
{
    assert_checked(!s->size && !s->argc && !s->envc);
    int err = reserve(s, (u32)strlen(path) + 1);
    if (!err)
        err = add_vector(s, argv, &s->argc);
    if (!err && !s->argc) { // init, and callers that pass no name
        memcpy(s->bytes, path, strlen(path) + 1);
        s->size = (u32)strlen(path) + 1;
        s->argc = 1;
    }
    return err ? err : add_vector(s, envp, &s->envc);
}

// Replaces the first `drop` bytes of the strings by `what`.
static int prepend(struct strings *s, u32 drop, const char *what, u32 n)
{
    assert_checked(drop <= s->size);
    int err = reserve(s, n);
    if (err)
        return err;
    memmove(s->bytes + n, s->bytes + drop, s->size - drop);
    memcpy(s->bytes, what, n);
    s->size += n - drop;
    return 0;
}

// --- the new program --------------------------------------------------------

struct program {
    struct vnode *vnode;
    char path[PATH_BYTES]; // the file opened last, for /proc and messages
    struct strings args;
    u32 euid, egid; // effective ids after exec
    bool secure;    // has rights beyond its user's
    bool guarded;   // its user may not inspect it
};

static int open_executable(struct program *p)
{
    assert_checked(!p->vnode);
    struct vnode *v;
    int err = vfs_lookup(NULL, p->path, WALK_FOLLOW, &v);
    if (err)
        return err;
    err = vnode_type(v) != S_IFREG ? -EACCES : vnode_may(v, MAY_X);
    if (!err)
        err = vnode_begin_running(v);
    if (err) {
        vnode_unref(v);
        return err;
    }
    p->vnode = v;
    return 0;
}

static void close_executable(struct program *p)
{
    if (!p->vnode)
        return;
    vnode_end_running(p->vnode);
    vnode_unref(p->vnode);
    p->vnode = NULL;
}

static char *skip_blanks(char *s)
{
    while (*s == ' ' || *s == '\t')
        s++;
    return s;
}

static char *end_of_word(char *s)
{
    while (*s && *s != ' ' && *s != '\t')
        s++;
    return s;
}

// #!interpreter [one argument]: 1 if it was a script; then p->path is the
// interpreter and argv[0] is replaced by: interpreter [argument] script.
static int follow_script(struct program *p)
{
    assert_checked(p->vnode && p->args.argc);
    char line[SCRIPT_LINE_MAX];
    int n = vnode_read(p->vnode, 0, line, sizeof(line) - 1);
    if (n < 2)
        return n < 0 ? n : -ENOEXEC;
    line[n] = 0;
    if (line[0] != '#' || line[1] != '!')
        return 0;
    char *end = strchr(line, '\n');
    if (!end)
        return -ENOEXEC;
    while (end > line && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    *end = 0;
    char *name = skip_blanks(line + 2);
    char *name_end = end_of_word(name);
    if (name == name_end)
        return -ENOEXEC;
    char *argument = skip_blanks(name_end);
    bool has_argument = *argument;
    *name_end = 0;

    int err = prepend(&p->args, (u32)strlen(p->args.bytes) + 1, p->path,
                      (u32)strlen(p->path) + 1);
    if (!err && has_argument)
        err = prepend(&p->args, 0, argument, (u32)strlen(argument) + 1);
    if (!err)
        err = prepend(&p->args, 0, name, (u32)strlen(name) + 1);
    if (err)
        return err;
    p->args.argc += 1 + has_argument;
    strlcpy(p->path, name, sizeof(p->path));
    return 1;
}

// The set-id bits have no effect on a mount with nosuid. S_ISGID without the
// group's execute bit has another meaning and gives no rights.
static void find_rights(struct program *p)
{
    struct vnode *v = p->vnode;
    const struct task *t = current_task();
    // Read at one instant: the bits apply to the owner that set them.
    spin_lock(&v->lock);
    u32 mode = v->mode, uid = v->uid, gid = v->gid;
    spin_unlock(&v->lock);
    if (v->mount && READ_ONCE(v->mount->nosuid))
        mode = 0;
    p->euid = mode & S_ISUID ? uid : READ_ONCE(t->euid);
    bool by_group = mode & S_ISGID && mode & S_IXGRP;
    p->egid = by_group ? gid : READ_ONCE(t->egid);
    p->secure = p->euid != READ_ONCE(t->uid) || p->egid != READ_ONCE(t->gid);
    p->guarded = p->secure || vnode_may(v, MAY_R);
}

static int resolve(struct program *p)
{
    for (int depth = 0;; depth++) {
        int err = open_executable(p);
        if (err)
            return err;
        err = follow_script(p);
        if (!err)
            find_rights(p);
        if (err <= 0)
            return err;
        close_executable(p);
        if (depth == SCRIPT_DEPTH_MAX)
            return -ELOOP;
    }
}

static bool keeps_layout(const struct task *t)
{
    return READ_ONCE(t->personality) & ADDR_NO_RANDOMIZE;
}

// Writes strings, auxiliary vector and pointers below `top` in one piece
// (i386 psABI, "Initial Process Stack"). *esp gets the stack pointer.
static int build_stack(struct aspace *as, const struct program *p,
                       const struct elf_image *image, u32 top, u32 *esp)
{
    const struct strings *s = &p->args;
    u32 random[4];
    random_bytes(random, sizeof(random));
    struct task *t = current_task();
    u32 strings_at = (top - s->size) & ~15u;
    u32 random_at = strings_at - sizeof(random);
    u32 aux[][2] = {
        { AT_PHDR, image->phdr },
        { AT_PHENT, sizeof(struct elf_segment) },
        { AT_PHNUM, image->phnum },
        { AT_PAGESZ, PAGE_SIZE },
        { AT_BASE, 0 },
        { AT_FLAGS, 0 },
        { AT_ENTRY, image->entry },
        { AT_UID, READ_ONCE(t->uid) },
        { AT_EUID, p->euid },
        { AT_GID, READ_ONCE(t->gid) },
        { AT_EGID, p->egid },
        { AT_HWCAP, 0 },
        { AT_CLKTCK, 100 },
        { AT_SECURE, p->secure },
        { AT_RANDOM, random_at },
        { AT_EXECFN, strings_at },
        { AT_SYSINFO, vdso_address(as->vdso, VDSO_SYSTEM_CALL) },
        { AT_SYSINFO_EHDR, as->vdso },
        { AT_NULL, 0 },
    };
    u32 words = 1 + s->argc + 1 + s->envc + 1;
    u32 at = (random_at - words * 4 - sizeof(aux)) & ~15u;
    u32 size = top - at;
    assert_checked(at % 16 == 0 && at < random_at);
    if (size > READ_ONCE(t->limits[LIMIT_STACK].soft) / 4)
        return -E2BIG;
    u8 *block = kzalloc(size);
    if (!block)
        return -ENOMEM;
    u32 *word = (u32 *)block;
    *word++ = s->argc;
    u32 offset = 0;
    for (u32 i = 0; i < s->argc + s->envc; i++) {
        if (i == s->argc)
            *word++ = 0;
        *word++ = strings_at + offset;
        offset += (u32)strlen(s->bytes + offset) + 1;
    }
    assert_checked(offset == s->size);
    if (!s->envc)
        *word++ = 0;
    *word++ = 0;
    assert_checked((u8 *)word + sizeof(aux) <= block + (random_at - at));
    memcpy(word, aux, sizeof(aux));
    memcpy(block + (random_at - at), random, sizeof(random));
    memcpy(block + (strings_at - at), s->bytes, s->size);
    int n = aspace_write(as, at, block, size);
    kfree(block);
    *esp = at;
    return n < 0 ? n : (u32)n == size ? 0 : -ENOMEM;
}

// The heap follows the program, after a random gap; without the gap if that
// leaves too little room.
static void place_heap(struct aspace *as, u32 end, u32 shift)
{
    if (end > USER_END / 2)
        shift = 0;
    as->brk_start = as->brk = end + shift;
}

static int build_aspace(struct program *p, struct aspace **out,
                        struct elf_image *image, u32 *esp)
{
    struct aspace *as;
    int err = aspace_create(&as);
    if (err)
        return err;
    struct layout layout;
    layout_choose(&layout, !p->secure && keeps_layout(current_task()));
    as->mmap_shift = layout.stack + layout.mmap;
    limits_apply(current_task(), as);
    aspace_set_program(as, p->vnode);
    err = elf_load(as, p->vnode, layout.program, image);
    u32 start, top = STACK_TOP - layout.stack, prot = PROT_R | PROT_W;
    if (!err && image->executes_stack)
        prot |= PROT_X;
    if (!err)
        err = aspace_map(as, top - STACK_INITIAL, STACK_INITIAL, prot,
                         AREA_STACK, MAP_AT_EXACTLY, NULL, 0, &start);
    if (!err)
        err = vdso_map(as);
    if (!err)
        err = build_stack(as, p, image, top, esp);
    if (err) {
        aspace_unref(as);
        return err;
    }
    place_heap(as, image->end, layout.brk);
    *out = as;
    return 0;
}

// --- the point of no return -------------------------------------------------

static const char *last_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

// The path of the file itself, with symlinks resolved: /proc/PID/exe, and where
// profilers find the symbols. If its path is unknown, the path given to execve.
static char *program_path(struct program *p)
{
    char *path = kmalloc(PATH_BYTES);
    if (!path)
        return NULL;
    char *result =
        kstrdup(vfs_path(p->vnode, path, PATH_BYTES) > 0 ? path : p->path);
    kfree(path);
    return result;
}

static void set_names(struct task *t, struct program *p, const char *called,
                      const struct elf_image *image)
{
    assert_checked(image->build_id_size <= sizeof(t->build_id));
    char *path = program_path(p);
    u32 cmdline_size = 0;
    for (u32 i = 0; i < p->args.argc; i++)
        cmdline_size += (u32)strlen(p->args.bytes + cmdline_size) + 1;
    char *cmdline = kmalloc(cmdline_size);
    if (cmdline)
        memcpy(cmdline, p->args.bytes, cmdline_size);

    u32 flags = spin_lock_irq(&t->lock);
    char *old_path = t->path, *old_cmdline = t->cmdline;
    t->path = path;
    t->cmdline = cmdline;
    t->cmdline_size = cmdline ? cmdline_size : 0;
    strlcpy(t->name, last_name(called), sizeof(t->name));
    strlcpy(current->name, t->name, sizeof(current->name));
    memcpy(t->build_id, image->build_id, image->build_id_size);
    t->build_id_size = (u8)image->build_id_size;
    WRITE_ONCE(t->load_bias, image->load_bias); // read by kernel/profile
    spin_unlock_irq(&t->lock, flags);
    kfree(old_path);
    kfree(old_cmdline);
}

static void swap_aspace(struct task *t, struct aspace *as)
{
    assert_checked(t == current_task() && as && as != t->aspace);
    preempt_disable();
    u32 flags = spin_lock_irq(&tasks_lock); // /proc reads it under this lock
    struct aspace *old = t->aspace;
    task_usage_keep_peak(t);
    task_set_aspace(t, as);
    spin_unlock_irq(&tasks_lock, flags);
    aspace_switch(as);
    preempt_enable();
    task_vfork_release(t);
    if (old)
        aspace_unref(old);
}

// A thread other than the first one takes the task's id (execve(2)).
static void become_leader(struct task *t)
{
    u32 flags = spin_lock_irq(&tasks_lock);
    if (current->tid != t->id)
        thread_set_id(current, t->id);
    spin_unlock_irq(&tasks_lock, flags);
}

// An exit signal requested at clone must be neither sent nor received by
// another program.
static void reset_exit_signals(struct task *t)
{
    u32 flags = spin_lock_irq(&tasks_lock);
    t->exit_signal = SIGCHLD;
    t->execs++;
    spin_unlock_irq(&tasks_lock, flags);
}

static void report_guarded(struct task *t)
{
    LINKER_SET_FOR_EACH(const struct task_observer, o, task_observers) {
        if ((*o)->guarded)
            (*o)->guarded(t);
    }
}

// If the table is shared, the task gets a copy; the other tasks keep the table.
static int unshare_files(struct task *t)
{
    struct files *own, *shared = t->files;
    if (!files_shared(shared))
        return 0;
    int err = files_fork(shared, &own);
    if (err)
        return err;
    u32 flags = spin_lock_irq(&tasks_lock);
    t->files = own;
    spin_unlock_irq(&tasks_lock, flags);
    files_unref(shared);
    return 0;
}

// A program with additional rights and its descendants get the default
// personality.
static void reset_personality(struct task *t, const struct program *p)
{
    if (p->secure)
        WRITE_ONCE(t->personality, 0);
}

static int commit(struct program *p, struct aspace *as, const char *called,
                  const struct elf_image *image)
{
    assert_checked(p->vnode && as);
    struct task *t = current_task();
    int err = task_kill_other_threads();
    if (!err)
        err = unshare_files(t);
    if (err) {
        aspace_unref(as);
        return err;
    }
    become_leader(t);
    reset_exit_signals(t);
    reset_personality(t, p);
    current->clear_tid = 0;
    arch_end_user();
    credentials_exec(p->euid, p->egid, p->guarded);
    if (p->guarded)
        report_guarded(t);
    swap_aspace(t, as);
    WRITE_ONCE(t->guarded, p->guarded);
    set_names(t, p, called, image);
    signal_reset_handlers(&t->signals);
    set_altstack(0, 0);
    files_close_on_exec(t->files);
    WRITE_ONCE(t->execed, true);
    LINKER_SET_FOR_EACH(const struct task_observer, o, task_observers) {
        if ((*o)->execed)
            (*o)->execed(t);
    }
    TRACE(task_exec, .task = t->id);
    return 0;
}

int task_exec(struct trapframe *tf, const char *path, u32 argv, u32 envp)
{
    assert_may_sleep();
    struct program *p = kzalloc(sizeof(*p));
    if (!p)
        return -ENOMEM;
    struct aspace *as = NULL;
    struct elf_image image;
    u32 esp = 0;
    strlcpy(p->path, path, sizeof(p->path));
    int err = collect(&p->args, path, argv, envp);
    if (!err)
        err = resolve(p);
    if (!err)
        err = build_aspace(p, &as, &image, &esp);
    if (!err)
        err = commit(p, as, path, &image);
    if (!err)
        arch_exec(tf, image.entry, esp);
    close_executable(p);
    kfree(p->args.bytes);
    kfree(p);
    return err;
}
