# Strobe: `make` builds everything, `make help` lists the other targets.

ifeq ($(filter grouped-target,$(.FEATURES)),)
$(error Strobe needs GNU make 4.3 or later, and this is $(MAKE_VERSION))
endif
ifneq ($(words $(CURDIR)),1)
$(error The path of this folder has a space, which make takes for the end of \
	a name: move the clone, $(CURDIR), to a path without spaces)
endif

# Builds read-only sources in a copy: `make O=DIR run` is `make run` in DIR, a copy
# of the sources with its own build/.
ifdef O
.PHONY: elsewhere $(MAKECMDGOALS)
elsewhere:
	@tools/build/copy '$(O)'
	@env -u MAKELEVEL $(MAKE) --no-print-directory -C '$(O)' O= $(MAKECMDGOALS)
$(MAKECMDGOALS): elsewhere
	@:
else
ifneq ($(filter-out help,$(or $(MAKECMDGOALS),all)),)
ifneq ($(shell if [ -e build ]; then test -w build; else test -w .; fi || \
		echo no),)
$(error This folder cannot be written to by $(shell id -un): `make O=DIR` copies \
	the sources to DIR and builds there)
endif
endif

# Uses all CPUs unless -j is given, here or in the environment.
ifeq ($(MAKELEVEL)$(filter -j% --jobs%,$(MAKEFLAGS) \
		$(shell printf %s "$$MAKEFLAGS")),0)
MAKEFLAGS += -j$(shell nproc)
endif
# `make clean all` runs the goals in order.
ifneq ($(filter %clean,$(MAKECMDGOALS)),)
.NOTPARALLEL:
endif

CROSS := i686-linux-gnu-
PYTHON := /usr/bin/python3
B := build

# The clang kernel is built beside the gcc kernel.
K := $(B)/kernel
KCC := $(CROSS)gcc
KCC_FLAGS := -mpreferred-stack-boundary=2
IMAGES := $(B)/initrd $(B)/tests.cpio
ISO := $(B)/strobe.iso
TOOL := $(B)/strobe
ifdef CLANG
TOOL :=
ISO :=
K := $(B)/clang/kernel
KCC := clang --target=i386-linux-gnu
KCC_FLAGS := -mstack-alignment=4 -mno-omit-leaf-frame-pointer \
	-Wno-gnu-variable-sized-type-not-at-end
IMAGES :=
endif
# The shadow's offset: KASAN_SHADOW - KERNEL_BASE / 8 (arch/mmu.h). GCC assumes a
# stack aligned to 8 bytes, like the shadow.
KASAN_OFFSET := 0xd8000000
KASAN_FLAGS := -fasan-shadow-offset=$(KASAN_OFFSET) --param asan-stack=1 \
	--param asan-globals=1 --param asan-instrumentation-with-call-threshold=0 \
	-mpreferred-stack-boundary=3 -mincoming-stack-boundary=2
ifdef CLANG
KASAN_FLAGS := $(addprefix -mllvm ,-asan-mapping-offset=$(KASAN_OFFSET) \
	-asan-stack=1 -asan-globals=1 -asan-instrumentation-with-call-threshold=0)
endif

# Checkers (docs/debugging.md), in any combination: make KASAN=1 LOCKDEP=1, make
# KCSAN=1. All include UBSan. Each combination has its own folder.
CHECKERS := $(strip $(foreach c,KASAN UBSAN LOCKDEP KCSAN,$(if $($(c)),$c)))
ifneq ($(CHECKERS),)
K := $(B)$(if $(CLANG),/clang)/checked/$(subst $() $(),-,$(CHECKERS))/kernel
KCC_FLAGS += -g1 -DCHECKED $(sort $(CHECKERS:%=-D%) -DUBSAN) -Wno-tsan \
	-Wno-array-bounds -Wno-maybe-uninitialized -Wno-stringop-overflow \
	$(if $(CLANG),-Wno-unknown-warning-option)
IMAGES :=
ISO :=
TOOL :=
SANITIZE := -fsanitize=undefined -fno-sanitize=object-size
endif
# Marks the functions that run: tools/coverage.
ifdef COVERAGE
ifneq ($(CHECKERS)$(CLANG),)
$(error COVERAGE=1 goes with GCC, and with no checker)
endif
K := $(B)/coverage/kernel
KCC_FLAGS += -DCOVERAGE
IMAGES :=
ISO :=
TOOL :=
SANITIZE := -fsanitize-coverage=trace-pc
endif
# For tools/build/uncalled: one section for each function, and no inlining, so that
# each call is a relocation.
ifdef UNCALLED
K := $(B)/uncalled/kernel
KCC_FLAGS += -O1 -w -fno-inline -ffunction-sections -fdata-sections
IMAGES :=
ISO :=
TOOL :=
endif
# The excluded UBSan checks would read each bool and enum by a plain access.
ifdef KCSAN
ifdef CLANG
$(error KCSAN=1 needs GCC: clang has no thread sanitizer for 32 bits)
endif
SANITIZE += -fsanitize=thread -fno-sanitize=bool,enum \
	--param tsan-distinguish-volatile=1 \
	--param tsan-instrument-func-entry-exit=0
endif
ifdef KASAN
SANITIZE += -fsanitize=kernel-address $(KASAN_FLAGS)
endif
# Stack canaries (kernel/debug/canary.c): of functions with an array of bytes; in checked
# kernels, of all with an array, or with the address of a variable.
SANITIZE += -fstack-protector$(if $(CHECKERS),-strong) -mstack-protector-guard=global
# The kernel, and the same objects with the in-kernel tests.
KERNEL := $(K).elf
KERNEL_TEST := $(K)-test.elf
# The checkers' own code and code that runs before memory is set up.
UNCHECKED := kernel/debug/% arch/i386/boot/% %.S
sanitize = $(if $(filter $(UNCHECKED),$1),,$(SANITIZE))

# Functions begin with a place for a jump or a call (arch/text.h), except in these
# files: what an NMI runs, from its entry to the stored sample; what runs before these
# places are in order; spinlocks (trace point lock.contended) and the callouts' calendar,
# which would be the most called of all. NOTRACE leaves out single functions of other files;
# tools/build/notrace checks what NMIs run.
NOTRACE := tests/kernel/% kernel/debug/% kernel/trace/% kernel/sync/spinlock.c lib/string.c \
	lib/calendar.c \
	$(addprefix arch/i386/,boot/% text/% cpu/nmi.c cpu/unwind.c \
		cpu/unwind_signals.c cpu/arithmetic.c mm/peek.c pmu/counter.c pmu/overflow.c) \
	$(addprefix kernel/,base/kframes.c profile/sample.c profile/bins.c \
		profile/address_bins.c profile/cost.c profile/nmi_ipi_source.c \
		profile/pmc_source.c profile/timer_source.c profile/trace_session.c \
		time/ledger.c)
PATCHABLE := $(if $(UNCALLED),,-fpatchable-function-entry=5)
patchable = $(if $(filter $(NOTRACE),$1),,$(PATCHABLE))

# --- output -------------------------------------------------------------------

# $(call say,WHAT $@,STAGE) begins a step. On a terminal the next step overwrites its
# line, except for goals that are files, which have no recipe to clear it: they get a
# line for each step. Elsewhere: a line for each stage. VERBOSE=1: a line for each step,
# and the commands. -s: no output.
Q := $(if $(VERBOSE),,@)
SILENT := $(findstring s,$(firstword -$(MAKEFLAGS)))
CLEAR_LINE :=
say = $(if $(said_$2),,$(eval said_$2 := yes)@echo 'Building $(or $(NAME_$2),$2)')
ifdef VERBOSE
say = @printf '  %-7s %s\n' $1
else ifneq ($(SILENT),)
say =
else ifneq ($(and $(MAKE_TERMOUT),$(filter $(B)/%,$(MAKECMDGOALS))),)
say = @echo '  $1'
else ifneq ($(and $(MAKE_TERMOUT),$(filter-out dumb,$(TERM))),)
# Return and clear the line; wrapping is off while it is printed.
export CLEAR_LINE := $(shell printf '\r\033[K')
say = @printf '\r\033[K\033[?7l%s\033[?7h\r' \
	'$(or $(NAME_$2),$2)$(call count,$2): $1'
endif
clear_line = $(if $(CLEAR_LINE),@printf '$(CLEAR_LINE)')

# Number of steps that a stage has begun and, if known, of all its steps: the objects
# missing when it begins.
count = $(eval begun_$1 += x)$(if $(OBJECTS_$1),$(call of,$(words $(begun_$1)),$1))
of = $(if $(filter 1,$1),$(eval missing_$2 := $(filter-out \
	$(wildcard $(OBJECTS_$2)),$(OBJECTS_$2)))) \
	$1$(if $(word $1,$(missing_$2)),/$(words $(missing_$2)))

NAME_kernel = the kernel$(if $(CHECKERS), with $(CHECKERS))$(if $(CLANG),$\
	$() by clang)
NAME_programs := the programs
NAME_strobe := the tool strobe
NAME_fuzzers := the harnesses
NAME_tests := the host tests
NAME_suites := the suites
NAME_images := the images
NAME_page := the pages of flame graphs
NAME_Debian := BusyBox of Debian
OBJECTS_kernel = $(KOBJECTS) $(TEST_OBJECTS)
OBJECTS_programs = $(USER_OBJECTS)
OBJECTS_strobe = $(NATIVE)

# Warnings are errors in `make check` and in continuous integration, but not on a
# user's machine, whose compiler may be untested: tools/build/compile.
WERROR ?= $(filter true,$(CI))
export WERROR
COMPILE = $Qtools/build/compile $@

.PHONY: all machine kernel run flame bench guard test test-quick test-draws test-stalls test-realtime \
	test-machines \
	test-checked fuzz fuzz-host suites soak coverage checked checked-addresses \
	checked-races checked-clang host-tests \
	check uncalled house release format docs clean distclean help FORCE
.DELETE_ON_ERROR:
.SECONDARY:

all: machine $(KERNEL_TEST) $(ISO) $(TOOL) $(B)/oracle.so
	$(clear_line)
	$(if $(READY),@echo '$(READY)')
READY = $(if $(filter all,$(or $(MAKECMDGOALS),all)),$(if $(SILENT),,$\
	$(KERNEL)$(if $(ISO), and $(ISO)): ready. $\
	`make run` boots$(COMMA) `make help` lists the rest.))
# Files needed to boot.
machine: $(KERNEL) $(IMAGES) $(B)/x87_stores.so
kernel: $(KERNEL) $(KERNEL_TEST)
	$(clear_line)

# --- reproducible builds: docs/install.md --------------------------------

# The version; make VERSION=... overrides it.
COMMIT := $(shell tools/build/version)
VERSION := $(word 1,$(COMMIT))
RELEASE := $(or $(shell echo '$(VERSION)' | \
	sed -n 's/^v\{0,1\}\([0-9][0-9]*\(\.[0-9][0-9]*\)\{1,2\}\).*/\1/p'),0.1.0)
ifndef SOURCE_DATE_EPOCH
SOURCE_DATE_EPOCH := $(word 2,$(COMMIT))
endif
export SOURCE_DATE_EPOCH

# Debug information names files relative to this folder: "./kernel/init/main.c". The
# compiler takes this folder's name from PWD, which may be wrong.
SAME_PATHS := -ffile-prefix-map=$(CURDIR)=.
export PWD := $(CURDIR)

$(B)/version: FORCE
	@$(call unchanged,$@,$(VERSION))

$(B)/epoch: FORCE
	@$(call unchanged,$@,$(SOURCE_DATE_EPOCH))

# --- tools ------------------------------------------------------------------

# Packages are installed by goal: the file build/deps/GOAL marks it as done.
DEPS := $(B)/deps

$(DEPS)/%: tools/deps
	@mkdir -p $(@D)
	@tools/deps $*
	@touch $@

# The goal whose packages the kernel and the host tests need.
GOAL := $(if $(CLANG),check,run)

# $(call unchanged,FILE,TEXT): rewrites FILE only if its text differs. Targets that
# depend on FILE are rebuilt when a source or an option is added or removed. This
# folder's name is no part of the text: it is in no object, so a tree that was moved or
# copied keeps its objects.
unchanged = [ "$$(cat $(1) 2>/dev/null)" = '$(call text,$2)' ] || { \
	mkdir -p $(@D); echo '$(call text,$2)' >$(1); }
text = $(strip $(filter-out $(SAME_PATHS),$1))

# --- kernel -----------------------------------------------------------------

INCLUDES := -Iinclude -Iarch/i386/include -I.

# Tuned for current CPUs, not for the Pentium Pro (i686).
KFLAGS := -std=gnu11 -fms-extensions -Wno-microsoft-anon-tag -O2 -g -march=i686 -mtune=generic -ffreestanding -fno-pic -fno-pie \
	-fno-omit-frame-pointer -fno-stack-protector -fno-strict-aliasing \
	-fno-asynchronous-unwind-tables -mgeneral-regs-only -mregparm=3 \
	-Wall -Wextra $(KCC_FLAGS) $(SAME_PATHS) $(INCLUDES)

# The vDSO is a separate shared object, embedded in a kernel object.
VDSO := $(K)/vdso.so
VDSO_SOURCE := arch/i386/vdso/vdso.c
# The constants of assembly files: lines of text in an object of its own.
ASSEMBLY := $(K)/assembly.h
ASSEMBLY_SOURCE := arch/i386/cpu/assembly.c

KSOURCES := $(filter-out $(VDSO_SOURCE) $(ASSEMBLY_SOURCE),$(sort $(shell \
	find arch/i386 kernel lib -name '*.[cS]' 2>/dev/null)))
# lwIP's files, and where its headers and options are (docs/off-machine.md).
LWIP := $(B)/lwip/ready
LWIP_SOURCES := $(addprefix $(B)/lwip/src/src/,netif/ethernet.c \
	$(addprefix core/,def.c inet_chksum.c init.c ip.c mem.c memp.c netif.c pbuf.c \
	stats.c timeouts.c udp.c ipv4/dhcp.c ipv4/etharp.c ipv4/icmp.c ipv4/ip4.c \
	ipv4/ip4_addr.c))
LWIP_FLAGS := -Ikernel/net/lwip -I$(B)/lwip/src/src/include
LWIP_LIBC := -Ikernel/net/lwip/libc
KOBJECTS := $(KSOURCES:%=$(K)/%.o) $(LWIP_SOURCES:%=$(K)/%.o)
TEST_SOURCES := $(sort $(wildcard tests/kernel/*.c))
TEST_OBJECTS := $(TEST_SOURCES:%=$(K)/%.o)
KLINK = $(CROSS)ld -m elf_i386 -nostdlib -z noexecstack -z max-page-size=4096 \
	--build-id=sha1 -T linker.ld $(filter %.o,$^)

$(K)/config: FORCE
	@$(call unchanged,$@,$(KCC) $(KFLAGS) $(SANITIZE) $(PATCHABLE))

$(K)/notrace: FORCE
	@$(call unchanged,$@,$(NOTRACE))

$(K)/objects: FORCE
	@$(call unchanged,$@,$(KOBJECTS) $(TEST_OBJECTS))

$(K)/%.o: % $(K)/config $(K)/notrace | $(DEPS)/$(GOAL)
	$(call say,CC $<,kernel)
	$(COMPILE) $(KCC) $(KFLAGS) $(call sanitize,$<) $(call patchable,$<) -c $<

$(ASSEMBLY): $(K)/$(ASSEMBLY_SOURCE).o
	$Q$(CROSS)objcopy -O binary -j .assembly $< $@.new
	@mv $@.new $@

$(patsubst %,$(K)/%.o,$(filter %.S,$(KSOURCES))): private KFLAGS += -I$(K)
$(patsubst %,$(K)/%.o,$(filter %.S,$(KSOURCES))): | $(ASSEMBLY)

$(LWIP_SOURCES): $(LWIP) ;
# lwIP's warnings are not ours to mend.
$(LWIP_SOURCES:%=$(K)/%.o): private KFLAGS += $(LWIP_FLAGS) $(LWIP_LIBC) -w
NET_OBJECTS := $(patsubst %,$(K)/%.o,$(wildcard kernel/net/*.c))
$(NET_OBJECTS): private KFLAGS += $(LWIP_FLAGS) $(LWIP_LIBC)
$(NET_OBJECTS): | $(LWIP)

$(VDSO): $(VDSO_SOURCE) arch/i386/vdso/vdso.lds kernel/time/time_page.h \
		lib/seqcount.h $(wildcard arch/i386/include/arch/*.h) $(K)/config | $(DEPS)/$(GOAL)
	@mkdir -p $(@D)
	$(call say,VDSO $@,kernel)
	$Q$(KCC) $(filter-out -fno-asynchronous-unwind-tables -fno-pic -fno-pie \
		-mregparm=3 -DK%SAN,$(KFLAGS)) -fpic -fvisibility=hidden -fasynchronous-unwind-tables \
		-c $< -o $@.o
	$Q$(CROSS)ld -m elf_i386 -shared -Bsymbolic -z noexecstack --eh-frame-hdr \
		--hash-style=sysv --build-id=sha1 -soname linux-gate.so.1 --fatal-warnings \
		-z max-page-size=4096 -T arch/i386/vdso/vdso.lds $@.o -o $@.linked
	$Q$(CROSS)objcopy --strip-debug $@.linked $@.new
	@mv $@.new $@

# Only this object has the version: a new version recompiles only it.
VERSION_OBJECT := $(K)/kernel/base/version.c.o
$(VERSION_OBJECT): $(B)/version
$(VERSION_OBJECT): private KFLAGS += -DVERSION='"$(VERSION)"' \
	-DRELEASE='"$(RELEASE)"'

$(K)/arch/i386/vdso/image.S.o: $(VDSO)
$(K)/arch/i386/vdso/image.S.o: KFLAGS += -DVDSO='"$(VDSO)"'

$(KERNEL) $(KERNEL_TEST): $(KOBJECTS) linker.ld $(K)/objects \
		kernel/notrace.txt $(addprefix tools/build/,kernel ksyms kframes patchable \
		relocations notrace)
	$(call say,LINK $@,kernel)
	$Qtools/build/kernel $@ $(KLINK)
# Linked second: tools/vm detects an outdated test kernel by its time.
$(KERNEL_TEST): $(TEST_OBJECTS) | $(KERNEL)

ifdef UNCALLED
uncalled: $(KOBJECTS) linker.ld tools/build/uncalled kernel/uncalled.txt
	$(clear_line)
	$Qtools/build/uncalled kernel/uncalled.txt $(KLINK)
else
uncalled:
	@$(MAKE) --no-print-directory UNCALLED=1 uncalled
endif

# The framebuffer's font.
FONT := $(B)/font/glyphs
$(FONT): tools/build/font | $(DEPS)/run
	$(call say,FETCH $@,Debian)
	@mkdir -p $(@D)
	$Qtools/build/font $@

$(K)/arch/i386/dev/font.S.o: $(FONT)
$(K)/arch/i386/dev/font.S.o: private KFLAGS += -DFONT='"$(FONT)"'

# --- foreign programs, built once ---------------------------------------------

MUSL := $(B)/musl/lib/libc.a
BUSYBOX := $(B)/busybox/busybox
LOGIN := $(B)/login/login
LUA := $(B)/lua/lua
SQLITE := $(B)/sqlite/sqlite3
QRENCODE := $(B)/qrencode/libqrencode.a
# What compresses the datagrams of remote (docs/off-machine.md), and what uses it.
LZ4 := build/lz4/ready
LZ4_SOURCE := build/lz4/src/lib/lz4.c
LZ4_USERS := user/libremote/client.c user/libremote/server.c
LZ4_FLAGS := -Ibuild/lz4/src/lib -DLZ4_MEMORY_USAGE=12
# What unpacks sections of call frame information: zlib's decompression, no gzip.
ZLIB := build/zlib/ready
ZLIB_SOURCES := $(addprefix build/zlib/src/,adler32.c inffast.c inflate.c inftrees.c \
	uncompr.c zutil.c)
ZLIB_USERS := user/libread/cfi_sections.c
ZLIB_FLAGS := -isystem build/zlib/src -DNO_GZIP
DEBIAN_BUSYBOX := $(B)/debian/busybox
# Foreign test suites: tests/suites.
SUITES := $(B)/suites/ready

# $(call foreign,TARGET,NAME,PREREQUISITES): tools/build/NAME fetches the source from
# Debian and builds TARGET.
define foreign
$1: tools/build/$2 $3
	$$(call say,BUILD $$@,$2)
	$$Qtools/build/$2
endef
$(eval $(call foreign,$(LWIP),lwip,| $(DEPS)/run))
$(eval $(call foreign,$(LZ4),lz4,| $(DEPS)/run))
$(eval $(call foreign,$(ZLIB),zlib,| $(DEPS)/run))
$(eval $(call foreign,$(MUSL),musl,| $(DEPS)/run))
$(eval $(call foreign,$(BUSYBOX),busybox,tools/build/busybox.config tools/cc $(MUSL)))
$(eval $(call foreign,$(LOGIN),login,$(BUSYBOX)))
$(eval $(call foreign,$(LUA),lua,tools/cc $(MUSL)))
$(eval $(call foreign,$(SQLITE),sqlite,tools/cc $(MUSL)))
$(eval $(call foreign,$(QRENCODE),qrencode,tools/cc $(MUSL)))
$(eval $(call foreign,$(SUITES),suites,tests/suites/run $(BUSYBOX)))

# $(call library,READY,SOURCES,USERS,FLAGS): sources that are compiled with our own, and
# with FLAGS, as are their users, for each kind of program.
define library
$2: $1 ;
$(foreach o,obj native host replay fuzz,$(addprefix $(B)/$o/,$(addsuffix .o,$2 $3))): | $1
$(addprefix $(B)/obj/,$(addsuffix .o,$2 $3)): private UFLAGS += $4
$(addprefix $(B)/native/,$(addsuffix .o,$2 $3)): private NFLAGS += $4
$(foreach o,host replay,$(addprefix $(B)/$o/,$(addsuffix .o,$2 $3))): private HOST_FLAGS += $4
$(addprefix $(B)/fuzz/,$(addsuffix .o,$2 $3)): private FUZZER_FLAGS += $4
endef
$(eval $(call library,$(LZ4),$(LZ4_SOURCE),$(LZ4_USERS),$(LZ4_FLAGS)))
$(eval $(call library,$(ZLIB),$(ZLIB_SOURCES),$(ZLIB_USERS),$(ZLIB_FLAGS)))

$(DEBIAN_BUSYBOX): | $(DEPS)/run
	$(call say,FETCH $@,Debian)
	$Qtools/build/fetch i386 busybox-static $(abspath $(B)/debian)
	@mv $(B)/debian/bin/busybox $@ 2>/dev/null || \
		mv $(B)/debian/usr/bin/busybox $@
	@touch $@

# --- user programs ----------------------------------------------------------

UFLAGS := -std=gnu11 -Wall -Wextra $(SAME_PATHS) -I. -pthread
# lib/, and what is as free of a C library as that, but only the tools use.
LIB_SOURCES := $(filter-out lib/string.c,$(sort $(wildcard lib/*.c user/libread/*.c))) \
	$(ZLIB_SOURCES)
LIB_OBJECTS := $(patsubst %,$(B)/obj/%.o,$(sort $(LIB_SOURCES) $(LZ4_SOURCE) \
	$(wildcard user/lib*/*.c)))
USER_OBJECTS := $(patsubst %,$(B)/obj/%.o,$(sort $(LIB_SOURCES) \
	$(wildcard user/*/*.c tests/guest/*.c tests/fuzz/*.c)))
LIBSTROBE := $(B)/libstrobe.a

PROGRAMS := $(filter-out lib%,$(notdir $(patsubst %/,%,$(sort \
	$(dir $(wildcard user/*/*.c))))))
USER := $(PROGRAMS:%=$(B)/user/%)
GUEST := $(patsubst tests/guest/%.c,$(B)/guest/%,$(wildcard tests/guest/*.c))
# The fuzzer is a test program of several files.
FUZZ := $(B)/guest/fuzz
FUZZ_OBJECTS := $(patsubst %,$(B)/obj/%.o,$(sort $(wildcard tests/fuzz/*.c)))

$(B)/obj/flags: FORCE
	@$(call unchanged,$@,$(UFLAGS))

$(B)/obj/%.c.o: %.c tools/cc $(B)/obj/flags $(MUSL)
	$(call say,CC $<,programs)
	$(COMPILE) tools/cc $(UFLAGS) -c $<

# They use arch/instructions.h.
$(LIB_SOURCES:%=$(B)/obj/%.o): private UFLAGS += -Iarch/i386/include

# Test programs without frame pointers or CFI, as foreign code may be.
$(B)/obj/tests/guest/frameless.c.o: private UFLAGS += -fomit-frame-pointer \
	-mno-accumulate-outgoing-args
$(B)/obj/tests/guest/no_cfi.c.o: private UFLAGS += -fomit-frame-pointer \
	-fno-asynchronous-unwind-tables -g0

$(B)/obj/config: FORCE
	@$(call unchanged,$@,$(LIB_OBJECTS))

$(LIBSTROBE): $(LIB_OBJECTS) $(B)/obj/config
	$(call say,AR $@,programs)
	@rm -f $@.new
	$Q$(CROSS)ar rcsD $@.new $(LIB_OBJECTS)
	@mv $@.new $@

.SECONDEXPANSION:
$(USER): $(B)/user/%: $$(patsubst $$(PERCENT),$(B)/obj/$$(PERCENT).o,$$(sort $$(wildcard user/$$*/*.c))) \
		$(LIBSTROBE)
	$(call say,LINK $@,programs)
	$(COMPILE) tools/cc $(filter %.o,$^) $(LIBSTROBE) $(filter $(QRENCODE),$^) -pthread -lm

$(B)/obj/user/hwreport/qr.c.o: $(QRENCODE)
$(B)/obj/user/hwreport/qr.c.o: private UFLAGS += -I$(B)/qrencode
$(B)/user/hwreport: $(QRENCODE)

$(filter-out $(B)/guest/pie,$(GUEST)): $(B)/guest/%: $(B)/obj/tests/guest/%.c.o $(LIBSTROBE)
	$(call say,LINK $@,programs)
	$(COMPILE) tools/cc $< $(LIBSTROBE) -pthread -lm

# Position-independent, so without musl, which is not.
$(B)/obj/tests/guest/pie.c.o: private UFLAGS += -fpie
$(B)/guest/pie: $(B)/obj/tests/guest/pie.c.o
	$(call say,LINK $@,programs)
	$(COMPILE) $(CROSS)gcc -static-pie -nostdlib -Wl,--build-id $<

$(FUZZ): $(FUZZ_OBJECTS) $(LIBSTROBE)
	$(call say,LINK $@,programs)
	$(COMPILE) tools/cc $(FUZZ_OBJECTS) $(LIBSTROBE)

# --- the host tool ------------------------------------------------------------

NFLAGS := -std=gnu11 -O2 -g -Wall -Wextra $(SAME_PATHS) -I. -Iinclude
NATIVE := $(patsubst %,$(B)/native/%.o,$(LIB_SOURCES) $(LZ4_SOURCE) \
	$(filter-out %/libremote/server.c %/recording.c %/reading.c %/events.c %/running_tasks.c \
	%/choose_functions.c %/function_names.c %/trace_begin.c,$(sort \
	$(wildcard user/libprofile/*.c user/libtrace/*.c user/libtransfer/*.c \
	user/libremote/*.c tools/strobe-src/*.c))) \
	$(addprefix \
	user/libstrobe/,core_clock.c kbox.c messages.c number.c options.c sensor_print.c \
	sensor_recording.c sensor_recording_print.c table.c \
	sysinfo.c sysinfo_tool.c))

$(B)/native/flags: FORCE
	@$(call unchanged,$@,$(NFLAGS))

$(B)/native/%.c.o: %.c $(B)/native/flags | $(DEPS)/tool
	$(call say,CC $<,strobe)
	$(COMPILE) gcc $(NFLAGS) -c $<

$(B)/native/config: FORCE
	@$(call unchanged,$@,$(NATIVE))

$(B)/strobe: $(NATIVE) $(B)/native/config
	$(call say,LINK $@,strobe)
	$(COMPILE) gcc $(NATIVE) -lm

# Page templates of strobe export --html and strobe diff --html.
PAGES := $(B)/page.html $(B)/diff.html

$(PAGES): $(B)/%.html: tools/build/page tools/build/npm \
		$(wildcard tools/strobe-src/page/*) | $(DEPS)/run
	$(call say,JOIN $@,page)
	$Qtools/build/page $* $@.new
	@mv $@.new $@

# --- images -----------------------------------------------------------------

ROOT_FILES := $(shell find user/root -type f 2>/dev/null)

$(B)/root.config: FORCE
	@$(call unchanged,$@,$(USER) $(GUEST) $(FUZZ) $(ROOT_FILES))

$(B)/tests.cpio: $(B)/initrd ;
$(B)/initrd: $(USER) $(GUEST) $(FUZZ) $(BUSYBOX) $(LOGIN) $(LUA) $(SQLITE) $(DEBIAN_BUSYBOX) \
		$(ROOT_FILES) $(B)/root.config $(B)/epoch tools/build/initrd
	$(call say,PACK $@,images)
	$Qtools/build/initrd $@ $(B)/tests.cpio $(USER) $(GUEST) $(FUZZ)

# The memory test of the ISO's menu.
MEMTEST := $(B)/memtest
$(MEMTEST)/x64: tools/build/memtest | $(DEPS)/run
	$(call say,FETCH $@,memtest86+)
	$Qtools/build/memtest $(MEMTEST)
	@touch $@

$(B)/strobe.iso: $(KERNEL) $(B)/initrd $(B)/epoch $(MEMTEST)/x64 tools/build/iso \
		tools/build/stick-partitions tools/stick_partitions.py | $(DEPS)/iso
	$(call say,PACK $@,images)
	$QMEMTEST=$(MEMTEST) tools/build/iso $@.new $(KERNEL) '' $(B)/initrd
	@mv $@.new $@

$(B)/qemu-version: FORCE | $(DEPS)/run
	@$(call unchanged,$@,$(shell qemu-system-i386 --version 2>&1))

$(B)/x87_stores.so: $(wildcard tools/qemu/*.[ch]) tools/build/qemu-plugin \
		$(B)/qemu-version
	$(call say,CC $@,images)
	$Qtools/build/qemu-plugin tools/qemu/x87_stores.c $@ 7 4

$(B)/oracle.so: $(wildcard tools/oracle/*.[ch] tools/qemu/*.h) \
		tools/build/qemu-plugin $(B)/qemu-version | $(DEPS)/tool
	$(call say,CC $@,images)
	$Qtools/build/qemu-plugin '$(wildcard tools/oracle/*.c)' $@ 7 4 1

# --- running ----------------------------------------------------------------

# make exits with 2 for any failure; `tools/vm -- CMD` with CMD's status.
run: machine $(if $(findstring --iso,$(VM)),$(ISO))
	$(clear_line)
	@tools/vm $(VM) $(if $(value CMD),-- "$$CMD")
run: override export CMD := $(value CMD)

flame: machine $(TOOL) $(PAGES)
	$(clear_line)
	@tools/flame $(VM) -- $(if $(value CMD),"$$CMD")
flame: override export CMD := $(value CMD)

bench: all
	$(clear_line)
	tools/bench/run
	tools/bench/symbols

# The budgets of tests/budgets.txt; UPDATE=1 accepts what was measured (docs/exact.md).
guard: $(KERNEL) $(IMAGES) $(TOOL) $(B)/oracle.so
	$(clear_line)
	@tools/guard $(if $(filter-out 0,$(UPDATE)),--update)

# --- tests ------------------------------------------------------------------

HOST_TESTS := $(patsubst tests/host/%.c,$(B)/host/%,\
	$(wildcard tests/host/test_*.c))
HOST_FLAGS := -std=gnu11 -fms-extensions -O1 -g -Wall -Wextra $(INCLUDES) \
	-fsanitize=address,undefined -fno-sanitize-recover=undefined \
	-fno-omit-frame-pointer -Wno-deprecated-declarations
# GCOV=1 counts executed lines (tools/coverage).
HOST_FLAGS += $(if $(GCOV),--coverage)
HOST_LIB := $(LIB_SOURCES:%=$(B)/host/%.o)

$(B)/host/flags: FORCE
	@$(call unchanged,$@,$(HOST_FLAGS))

$(B)/host/%.c.o: %.c $(B)/host/flags \
		| $(DEPS)/$(or $(filter check,$(GOAL)),quick)
	$(call say,CC $<,tests)
	$(COMPILE) gcc $(HOST_FLAGS) -c $<

# A test names the kernel files that it links: `// link: kernel/x/y.c`.
links = $(shell sed -n 's,^// link: *,,p' $1.c)
$(HOST_TESTS): $(B)/host/%: $(B)/host/tests/host/%.c.o $(HOST_LIB) \
		$$(patsubst $$(PERCENT),$(B)/host/$$(PERCENT).o,$$(call links,tests/host/$$*))
	$(call say,LINK $@,tests)
	$(COMPILE) gcc $(HOST_FLAGS) $(filter %.o,$^) -lcmocka -lm

$(LWIP_SOURCES:%=$(B)/host/%.o): private HOST_FLAGS += $(LWIP_FLAGS) -w
NET_TEST := $(addprefix $(B)/host/,tests/host/test_net.c.o kernel/net/frame.c.o \
	kernel/net/timers.c.o)
$(NET_TEST): private HOST_FLAGS += $(LWIP_FLAGS)
$(NET_TEST): | $(LWIP)
$(B)/host/test_net: $(LWIP_SOURCES:%=$(B)/host/%.o)

# The parsers' harnesses are 32-bit programs like the kernel: built with gcc's
# sanitizers to replay corpora as host tests, and with libFuzzer for `make fuzz-host`.
HARNESSES := $(filter-out replay,$(patsubst tests/fuzz/host/%.c,%,\
	$(wildcard tests/fuzz/host/*.c)))
REPLAYS := $(if $(filter x86_64 i%86,$(shell uname -m)),\
	$(HARNESSES:%=$(B)/replay/fuzz_%))
FUZZERS := $(HARNESSES:%=$(B)/fuzz/%)
FUZZER_CC := tools/fuzz-host/cc
CROSS_LIB := /usr/i686-linux-gnu/lib
# The harness of received frames, with lwIP.
NET_FUZZ := tests/fuzz/host/net.c.o kernel/net/frame.c.o kernel/net/timers.c.o
$(NET_FUZZ:%=$(B)/replay/%): private HOST_FLAGS += $(LWIP_FLAGS)
$(NET_FUZZ:%=$(B)/fuzz/%): private FUZZER_FLAGS += $(LWIP_FLAGS)
$(LWIP_SOURCES:%=$(B)/replay/%.o): private HOST_FLAGS += $(LWIP_FLAGS) -w
$(LWIP_SOURCES:%=$(B)/fuzz/%.o): private FUZZER_FLAGS += $(LWIP_FLAGS) -w
$(foreach o,replay fuzz,$(NET_FUZZ:%=$(B)/$o/%) $(LWIP_SOURCES:%=$(B)/$o/%.o)): | $(LWIP)
$(B)/replay/fuzz_net: $(LWIP_SOURCES:%=$(B)/replay/%.o)
$(B)/fuzz/net: $(LWIP_SOURCES:%=$(B)/fuzz/%.o)
REPLAY_LINK := -Wl,--disable-new-dtags,-rpath,$(CROSS_LIB) -Wl,--dynamic-linker=$(CROSS_LIB)/ld-linux.so.2

$(B)/replay/flags: FORCE
	@$(call unchanged,$@,$(HOST_FLAGS))

$(B)/replay/%.c.o: %.c $(B)/replay/flags | $(DEPS)/run
	$(call say,CC $<,tests)
	$(COMPILE) $(CROSS)gcc $(HOST_FLAGS) -c $<

$(REPLAYS): $(B)/replay/fuzz_%: $(B)/replay/tests/fuzz/host/%.c.o \
		$(B)/replay/tests/fuzz/host/replay.c.o $(LIB_SOURCES:%=$(B)/replay/%.o) \
		$$(patsubst $$(PERCENT),$(B)/replay/$$(PERCENT).o,$$(call links,tests/fuzz/host/$$*)) \
		$(B)/corpus/%/.unpacked
	$(call say,LINK $@,tests)
	$(COMPILE) $(CROSS)gcc $(HOST_FLAGS) $(filter %.o,$^) $(REPLAY_LINK) -lm

# Each corpus is one archive (tools/fuzz-host/run --merge NAME).
$(B)/corpus/%/.unpacked: tests/fuzz/host/corpus/%.tar.xz | $(DEPS)/tool
	@rm -rf $(@D) && mkdir -p $(@D) && tar -xJf $< -C $(@D) && touch $@

FUZZER_FLAGS := $(filter-out -O1 -Wall -Wextra,$(HOST_FLAGS)) -O2
$(B)/fuzz/flags: FORCE
	@$(call unchanged,$@,$(FUZZER_FLAGS))

$(B)/fuzz/%.c.o: %.c $(B)/fuzz/flags $(FUZZER_CC) | $(DEPS)/fuzz
	$(call say,CC $<,fuzzers)
	$(COMPILE) $(FUZZER_CC) $(FUZZER_FLAGS) -fsanitize=fuzzer-no-link -c $<

$(FUZZERS): $(B)/fuzz/%: $(B)/fuzz/tests/fuzz/host/%.c.o $(LIB_SOURCES:%=$(B)/fuzz/%.o) \
		$$(patsubst $$(PERCENT),$(B)/fuzz/$$(PERCENT).o,$$(call links,tests/fuzz/host/$$*)) \
		$(B)/corpus/%/.unpacked
	$(call say,LINK $@,fuzzers)
	$(COMPILE) $(FUZZER_CC) $(FUZZER_FLAGS) -fsanitize=fuzzer $(filter %.o,$^) -lm

# The host tool with the same sanitizers, for damaged files (test_damaged).
CHECKED_TOOL := $(B)/host/strobe
$(CHECKED_TOOL): $(NATIVE:$(B)/native/%=$(B)/host/%) $(B)/native/config
	$(call say,LINK $@,tests)
	$(COMPILE) gcc $(HOST_FLAGS) $(filter %.o,$^) -lm

host-tests: $(HOST_TESTS) $(REPLAYS)
	$(clear_line)

# SECONDS for each harness, or T=NAME for one: docs/reliability.md. (Another goal's T
# may have colons.)
SECONDS := 600
fuzz-host: $(if $(filter fuzz-host,$(MAKECMDGOALS)),$(or $(T:%=$(B)/fuzz/%),$(FUZZERS)))
	$(clear_line)
	@tools/fuzz-host/run --seconds $(SECONDS) $(or $(T),$(HARNESSES))

# The kernels with checkers, and clang's: tests/system/checkers.py.
CHECKED_KERNELS := checked-addresses checked-races checked-clang
checked-addresses: WITH := KASAN=1 UBSAN=1 LOCKDEP=1
checked-races: WITH := KCSAN=1
checked-clang: WITH := CLANG=1 GOAL=test
$(CHECKED_KERNELS): | $(DEPS)/test
	@$(MAKE) --no-print-directory kernel $(WITH)

checked: $(CHECKED_KERNELS)

# T=PATTERN runs a part, REDRAW=N draws other random numbers: tools/build/test reads
# both from the environment. docs/testing.md describes the tiers.
# A part of about a minute.
test-quick: all $(HOST_TESTS) $(REPLAYS) | $(DEPS)/quick
	$(clear_line)
	@$(PYTHON) tools/build/test quick $(HOST_TESTS) $(REPLAYS)

test: all checked $(PAGES) $(HOST_TESTS) $(REPLAYS) $(CHECKED_TOOL) $(SUITES) | $(DEPS)/test
	$(clear_line)
	@$(PYTHON) tools/build/test deterministic $(HOST_TESTS) $(REPLAYS)

test-realtime: all checked | $(DEPS)/test
	$(clear_line)
	@$(PYTHON) tools/build/test realtime

DRAWS := 100
test-draws: export DRAWS := $(DRAWS)
test-draws: all $(HOST_TESTS) | $(DEPS)/test
	$(clear_line)
	@$(PYTHON) tools/build/test draws $(HOST_TESTS)

# All that repeats to the digit, on a host that seems to be busy.
test-stalls:
	@tools/stall $(MAKE) --no-print-directory test

# The matrix of machines: tests/system/machines.py.
test-machines: all | $(DEPS)/test
	$(clear_line)
	@$(PYTHON) tools/build/test machines

test-checked: all checked | $(DEPS)/test
	$(clear_line)
	@$(PYTHON) tools/build/test checked

# Millions of random system calls: docs/reliability.md. SEED=N is the first seed,
# CALLS=N the number of calls on the plain kernel; a tenth on each checked one.
SEED := 1
CALLS := 10000000
FUZZ_RUNS := 10
# Soak test of MINUTES on one CPU in virtual time, then on four in real time; then
# with faults (docs/reliability.md).
MINUTES := 60
soak: all | $(DEPS)/test
	$(clear_line)
	tools/soak --minutes $(MINUTES)
	tools/soak --minutes $(MINUTES) --smp 4
	tools/soak --minutes $(MINUTES) --faults

# Lists kernel functions that no test or fuzzer runs (docs/testing.md).
coverage: all | $(DEPS)/test
	@$(MAKE) --no-print-directory kernel COVERAGE=1
	@$(MAKE) --no-print-directory host-coverage B=$(B)/coverage GCOV=1
	$(clear_line)
	tools/coverage --least 95
# Host tests and harnesses that contain kernel files.
OF_KERNEL = $(basename $(notdir $(shell grep -lE \
	'^(// link:|.include).*\b(kernel|arch)/\S*\.c\b' tests/host/*.c tests/fuzz/host/*.c)))
host-coverage: $$(filter $$(addprefix $(B)/host/,$$(OF_KERNEL)),$(HOST_TESTS)) \
		$$(filter $$(addprefix $(B)/replay/fuzz_,$$(OF_KERNEL)),$(REPLAYS))

FUZZ_CALLS = --seed $(SEED) --runs $(FUZZ_RUNS) --calls $$(($(CALLS) / $(FUZZ_RUNS)$1))
fuzz: all checked-addresses checked-races | $(DEPS)/test
	$(clear_line)
	tools/fuzz $(call FUZZ_CALLS, / 10) \
		--kernel build/checked/KASAN-UBSAN-LOCKDEP/kernel.elf
	tools/fuzz $(call FUZZ_CALLS, / 10) --kernel build/checked/KCSAN/kernel.elf
	tools/fuzz $(FUZZ_CALLS)

# The whole suites of BusyBox, its shell and bash: tests/suites.
suites: all $(SUITES) | $(DEPS)/test
	$(clear_line)
	SUITES=all $(PYTHON) -m pytest -q tests/system/test_suites.py

OUR_C = $(shell find arch kernel lib include user tools tests -name '*.[ch]')

# False alarms: the first for linker sets, the second for structures that a callee
# fills.
CPPCHECK_OFF := comparePointers uninitStructMember missingIncludeSystem

# With WERROR, objects compiled with a warning are compiled again.
ifneq ($(filter-out 0,$(WERROR)),)
$(patsubst %.warnings,%,$(shell find $(B) -name '*.warnings' 2>/dev/null)): FORCE
endif

PLUGIN_FLAGS := -std=gnu11 -Wall -Wextra -I.

check: | $(DEPS)/check
	@$(MAKE) --no-print-directory WERROR=1 GOAL=check all \
		host-tests
	@$(MAKE) --no-print-directory WERROR=1 CLANG=1 kernel
	@for compiler in gcc clang; do for version in 4 7; do \
		$$compiler $(PLUGIN_FLAGS) -fsyntax-only -Werror -DAPI_VERSION=$$version \
			tools/qemu/*.c tools/oracle/*.c || exit; done; \
		$$compiler $(PLUGIN_FLAGS) -fsyntax-only -Werror -DAPI_VERSION=1 \
			tools/oracle/*.c || exit; done
	@echo layers
	@tools/build/layers check $(B)/kernel
	@echo uncalled
	@$(MAKE) --no-print-directory uncalled
	@$(foreach p,$(PAGES_MADE),$(MAKE_$p) | diff -u docs/$p - || \
		{ echo 'docs/$p: run make docs'; exit 1; };)
	@echo phrases
	@tools/build/phrases
	@echo clang-format
	@clang-format --dry-run -Werror $(OUR_C)
	@echo cppcheck
	$Qcppcheck --quiet --error-exitcode=1 --inline-suppr -j 2 \
		--enable=warning,portability $(CPPCHECK_OFF:%=--suppress=%) \
		--std=c11 --platform=unix32 --library=gnu -D__GNUC__=12 \
		-D__i386__ $(INCLUDES) arch kernel lib user

# The layers and the number of includes between them; drawn if graphviz is installed.
house:
	@tools/build/layers graph
	@! command -v dot >/dev/null || { tools/build/layers dot | \
		dot -Tsvg -o $(B)/house.svg && echo '$(B)/house.svg: the same, drawn'; }

# Pages of docs/ that are made, as a whole or in part: $(MAKE_PAGE) prints PAGE.
PAGES_MADE := syscalls.md architecture.md
MAKE_syscalls.md := tools/build/syscalls include/strobe/syscalls.def
MAKE_architecture.md := tools/build/layers page docs/architecture.md

docs:
	$(foreach p,$(PAGES_MADE),$(MAKE_$p) >docs/$p.new && mv docs/$p.new docs/$p &&) true

release:
	@tools/build/release $(if $(findstring command,$(origin VERSION)),'$(VERSION)')

# From the commands that this Makefile would run (make -n), and tools/build/qemu-plugin.
compile_commands.json: FORCE
	@{ $(MAKE) -nB CLANG=1 VERBOSE= kernel; \
		$(MAKE) -nB all $(HOST_TESTS) $(REPLAYS); \
		for file in tools/qemu/*.c tools/oracle/*.c; do \
			echo tools/build/compile $(B)/plugin.o \
			gcc $(PLUGIN_FLAGS) -DAPI_VERSION=7 -c $$file; done; \
		echo tools/build/compile $(B)/plugin.o gcc -std=gnu11 -Wall -Wextra \
			-isystem /usr/include/kernelshark -c tests/system/kernelshark.c; \
	} | tools/build/commands $@

format:
	clang-format -i $(OUR_C)

clean:
	rm -rf $(filter-out $(B)/apt $(B)/musl $(B)/busybox $(B)/login $(B)/lua \
		$(B)/sqlite $(B)/qrencode $(B)/lwip $(B)/lz4 $(B)/zlib $(B)/debian $(B)/font $(MEMTEST) $(B)/suites \
		$(B)/npm $(DEPS),$(wildcard $(B)/*))

distclean:
	rm -rf $(B)

help:
	@echo 'Build'
	@echo '  make                  build/kernel.elf, build/strobe.iso, build/strobe'
	@echo '                        (the tool; tools/strobe), on all CPUs; -jN: on N'
	@echo '  make kernel           build/kernel.elf, and kernel-test.elf: the same and'
	@echo '                        the tests that run in the kernel'
	@echo '  make kernel CLANG=1   build/clang/kernel.elf, by clang'
	@echo '  make kernel KASAN=1   one that checks itself: docs/debugging.md'
	@echo '  make ... VERBOSE=1    show the commands'
	@echo '  make ... WERROR=1     warnings are errors (where CI=true they are)'
	@echo '  make ... O=DIR        the same in DIR, a copy of the sources'
	@echo 'Run'
	@echo '  make run              boot in QEMU, a shell on this terminal'
	@echo "  make run CMD='...'    boot, run a command, show what it prints"
	@echo "  make run VM='...'     with options for tools/vm, e.g. VM='--smp 4'"
	@echo "  make flame CMD='...'  see where its time went: build/flame.html"
	@echo 'Test'
	@echo '  make test-quick       a minute: what repeats to the digit, on one CPU'
	@echo '  make test             what repeats to the digit (T=PATTERN: a part)'
	@echo '  make test-draws       statistical tests, DRAWS=100 draws of each'
	@echo '  make test-stalls      make test, whose processes are stopped now and then'
	@echo '  make test-realtime    what needs real time: checkers, terminals, races'
	@echo '  make test-checked     those of the kernels that check themselves'
	@echo '  make test-machines    all machines of the matrix: firmwares, CPUs, timers'
	@echo '  make fuzz             12 million random system calls, for hours'
	@echo "  make suites           BusyBox's suite, its shell's and bash's, whole"
	@echo '  make fuzz-host        what reads files, by libFuzzer: SECONDS=600 of each'
	@echo '  make soak             everything at once, MINUTES=60 on 1 and on 4 CPUs'
	@echo '  make coverage         which functions of the kernel no test ever runs'
	@echo '  make check            warnings, clang build, layers, uncalled, format,'
	@echo '                        cppcheck, docs'
	@echo '  make bench            the table of costs'
	@echo '  make guard            costs against their budgets: which path, which line'
	@echo '  make guard UPDATE=1   accept the costs as they are'
	@echo 'Keep in order'
	@echo '  make format           clang-format all of our C'
	@echo '  make release          ISO, symbols, sources of this tag: build/release'
	@echo '  make house            the layers of the kernel, and their includes'
	@echo '  make uncalled         functions of the kernel that nothing in it calls'
	@echo '  make docs             docs/syscalls.md from syscalls.def, the layers'
	@echo '                        table of docs/architecture.md'
	@echo '  make compile_commands.json   the commands, for clangd and its kin'
	@echo '  make clean            remove what was built of ours'
	@echo '  make distclean        remove all of build/, also musl, BusyBox, lua, sqlite'

PERCENT := %
COMMA := ,
-include $(KOBJECTS:.o=.d) $(TEST_OBJECTS:.o=.d) \
	$(K)/$(ASSEMBLY_SOURCE).d
-include $(shell find $(B)/obj $(B)/host $(B)/fuzz $(B)/replay $(B)/native -name '*.d' 2>/dev/null)
endif
