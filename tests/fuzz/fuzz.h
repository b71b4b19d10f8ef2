// The fuzzer: random system calls, typed by the names and the argument kinds of
// include/strobe/syscalls.def.
//
// An operation is a call with a token for each argument. A token says how a
// value is made (a number, a descriptor's slot, a structure), and is resolved
// when the call is made. Operation I of seed S and the contents of its
// structures are always the same, so a run can be repeated, as a whole, in
// part, or from the text that `--print` writes (script.c).
//
// EPISODE_OPS operations are an episode: one to four workers, threads and
// tasks, make them concurrently (episode.c) in a jail (jail.c). A round is
// LANES concurrent episodes, each in its own jail, so that a worker that waits
// does not leave its CPU idle.
#pragma once

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define JAILS "/tmp/fuzz"
#define JAIL JAILS "%u" // of a lane
#define EPISODE_OPS 400u
#define LANES 16u
#define WORKERS 4u
#define SLOTS 21u     // of descriptors
#define CALLS_MAX 512 // of the table
#define ARGUMENTS 6u
#define PORT \
    5000u // a socket of the episode is bound to it, and one to the next
#define FUNCTIONS_MAX 4096u // of the kernel that the fuzzer knows

// --- operations

// T(name): how an argument's value is made from a token's number.
#define TOKENS(T)                                               \
    T(num)        /* itself */                                  \
    T(fd)         /* the descriptor in a slot */                \
    T(path)       /* a string: paths of the jail */             \
    T(node)       /* a string: the path of a node of sysinfo */ \
    T(length)     /* of the string before it */                 \
    T(memory)     /* an address in the arena */                 \
    T(edge)       /* the last bytes before an unmapped page */  \
    T(bad)        /* a kernel address, or an unmapped one */    \
    T(own)        /* of the program's own text, data, stack */  \
    T(task)       /* any task or thread */                      \
    T(victim)     /* a task or thread of the episode */         \
    T(words)      /* from here on: a pointer to a structure */  \
    T(zeros)      /* */                                         \
    T(iovec)      /* */                                         \
    T(time)       /* a timespec or timeval, short */            \
    T(interval)   /* an itimerspec or itimerval */              \
    T(signals)    /* a mask */                                  \
    T(action)     /* struct sigaction */                        \
    T(event)      /* struct sigevent */                         \
    T(stack)      /* stack_t */                                 \
    T(polls)      /* pollfd[] */                                \
    T(sets)       /* fd_set */                                  \
    T(call)       /* struct ipc_call, also for kernel boxes */  \
    T(arguments)  /* char *[] */                                \
    T(lock)       /* struct flock */                            \
    T(limit)      /* struct rlimit */                           \
    T(ids)        /* gid_t[] */                                 \
    T(mapping)    /* mmap's arguments */                        \
    T(select)     /* select's arguments */                      \
    T(descriptor) /* struct user_desc */                        \
    T(adjustment) /* struct timex */                            \
    T(filesystem) /* a string: its type */                      \
    T(request)    /* an ioctl's, also SENSOR_CREATE's */        \
    T(text)       /* bytes, no path */                          \
    T(socket)     /* a descriptor, mostly of a socket */        \
    T(address)    /* struct sockaddr_in: of this machine */     \
    T(message)    /* struct msghdr */                           \
    T(disk)       /* a string: a disk's name, or "none" */

enum token_kind {
#define TOKEN_ENUM(name) TOKEN_##name,
    TOKENS(TOKEN_ENUM)
#undef TOKEN_ENUM
        TOKEN_KINDS
};

struct token {
    uint32_t kind; // enum token_kind
    uint32_t value;
};

struct operation {
    uint32_t worker;
    uint32_t call; // index into calls[]
    uint32_t slot; // for a descriptor that it returns
    struct token argument[ARGUMENTS];
};

struct call {
    uint32_t number;
    const char *name;
    char kinds[7]; // one letter per argument (syscalls.def), then NUL
};

extern const struct call calls[]; // the table (grammar.c)
extern const uint32_t call_count;

// Once, before any of the following.
void grammar_prepare(void);
// Operation `index` of `seed`.
void grammar_make(uint64_t seed, uint32_t index, struct operation *op);
bool call_gives_descriptor(uint32_t call);
// Whether it may be made on tasks outside of the episode.
bool call_spares_others(uint32_t call);

// A reproducible stream of numbers.
struct draw {
    uint64_t state;
};
struct draw draw_of(uint64_t seed, uint64_t stream);
uint32_t draw_word(struct draw *d);
uint32_t draw_below(struct draw *d, uint32_t n);

// --- a worker

#define ROOM_WORDS 256 // for what an argument points to

struct worker {
    uint32_t number;
    int *fds; // SLOTS of them
    uint32_t last_length;
    bool is_child; // of a fork among its operations
    char *page;    // an unmapped page follows it
    uint32_t rooms[ARGUMENTS][ROOM_WORDS];
};

// Shared by the supervisor and the workers. A leader moves its lane's page to
// OWN_LANE and unmaps the others', so that no worker knows another lane's
// tasks.
struct progress {
    uint32_t tid;  // 0: not begun
    uint32_t done; // operations
    uint32_t ended;
};
struct lane {
    struct progress progress[WORKERS];
} __attribute__((aligned(4096)));
struct shared {
    struct lane lanes[LANES];
    uint32_t calls[CALLS_MAX], errors[CALLS_MAX];
    uint32_t ops; // that were made
    uint32_t functions[FUNCTIONS_MAX], function_count;
};
// At fixed addresses, away from what the operations map and fill. Constants,
// because operations also overwrite variables.
#define SHARED 0x70000000u
#define shared ((struct shared *)SHARED)
#define OWN_LANE 0x71000000u
#define own_lane ((struct lane *)OWN_LANE)

// The arena: pointers to data point into it, and mmap and related calls change
// it.
#define ARENA 0x50000000u
#define ARENA_PAGES 64u // private, and as many shared by all workers
#define PAGE 4096u

// A raw system call: returns -errno for an error.
long raw(uint32_t number, const uint32_t arguments[ARGUMENTS]);
long raw_call(uint32_t number, uint32_t a, uint32_t b, uint32_t c, uint32_t d);
// The value of a token, for argument `place` (values.c).
uint32_t value_of(struct worker *w, const struct token *t, uint32_t place,
                  bool spares_others);
void operation_run(struct worker *w, const struct operation *op);
// Once: reads which of the kernel's functions can be traced (messages.c).
void functions_prepare(void);
// Some of them, ascending, up to `most`. Returns their number.
uint32_t some_functions(struct draw *d, uint32_t *out, uint32_t most);

// --- episodes

// One episode: its operations, and the number from which its shape (workers,
// user) is drawn.
struct episode {
    uint64_t shape;
    uint32_t count;
    const struct operation *ops; // NULL: those of `seed` from `first` on
    uint64_t seed;
    uint32_t first;
};

// Returns its operations. The next call for a seed's overwrites them.
const struct operation *episode_ops(const struct episode *e);
// Runs up to LANES episodes concurrently: makes the jails, ends remaining
// tasks, removes the jails. Prints failures and returns false for them.
bool round_run(const struct episode *e, uint32_t lanes);
void jail_path(uint32_t lane, char path[16]);
void jails_prepare(void); // once, before the first
// Mounts and unmounts a devtmpfs: the kernel frees what was unmounted lazily at
// the next mount, and keeps one /dev for reuse.
void mounts_quiesce(void);
bool jail_make(uint32_t lane);
bool jails_remove(void);
// Ends all tasks of this program except the caller and the sessions (storm.c).
bool end_all_tasks(void);

// --- concurrent sampling sessions

void storm_begin(uint32_t seed);
bool storm_is(pid_t process_group);
void storm_end(void);

// Opens one of the machine's sensors for reading. Returns -1 where it cannot be
// (another user's, or no more).
int open_some_sensor(struct draw *d);

// --- memory of the kernel (memory.c)

// Notes the kernel's memory. The caller must be the fuzzer's only task.
void memory_note(void);
// Compares with the note; false if more has changed than can be explained.
bool memory_check(void);

// --- scripts: operations as text

void script_print(const struct episode *e);
// Reads the episodes of a file and runs them, LANES at a time. Exits on an
// error.
bool script_run(const char *path, uint32_t times);
