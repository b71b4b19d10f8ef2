"""BusyBox works as usual: many small workloads, on several CPUs."""
import functools
import os

import pytest

from machine import ROOT, batch, vm

# name: (script, expected output); the status must be 0 unless the script says.
WORKLOADS = {
    "pipes": ("seq 1 1000 | grep 7 | wc -l", "271\n"),
    "long pipe": ("seq 1 20000 | cat | cat | cat | cat | tail -n 1", "20000\n"),
    "redirections": (
        "echo a >f; echo b >>f; cat <f; ls /nowhere 2>e || wc -l <e;"
        " { echo out; echo err >&2; } >both 2>&1; cat both",
        "a\nb\n1\nout\nerr\n"),
    "here document": ("x=5; cat <<END\nx is $x\nEND", "x is 5\n"),
    "substitution": ("echo $(echo a $(echo b)) `echo c`", "a b c\n"),
    "loops": (
        "i=0; while [ $i -lt 500 ]; do i=$((i+1)); done; echo $i;"
        " for f in a b c; do printf $f; done; echo", "500\nabc\n"),
    "background": (
        "{ for i in 1 2 3 4 5; do (sleep 0.$i; echo $i) & done; wait;"
        " echo all; } >f; tail -n 1 f; sort f", "all\n1\n2\n3\n4\n5\nall\n"),
    "statuses": (
        "false; echo $?; true; echo $?; nonsense 2>/dev/null; echo $?;"
        " sh -c 'kill -9 $$'; echo $?; (exit 42); echo $?",
        "1\n0\n127\n137\n42\n"),
    "trap": ("trap 'echo bye' EXIT; trap 'echo usr1' USR1; kill -USR1 $$;"
             " echo here", "usr1\nhere\nbye\n"),
    "kill job": ("sleep 100 & kill $!; wait $!; echo $?", "143\n"),
    "timeout": ("timeout 1 sleep 50; echo $?", "143\n"),
    "ls": (
        "touch b a; mkdir d; ln -s a l; chmod 640 a; ls; ls -l a |"
        " cut -c1-10; ls -l l | sed 's/.*l ->/->/'; ls -ld d | cut -c1-10",
        "a\nb\nd\nl\n-rw-r-----\n-> a\ndrwxr-xr-x\n"),
    "find": ("mkdir -p x/y/z; touch x/1 x/y/2 x/y/z/3; find x -type f | sort;"
             " find x -name '2' -exec echo found {} \\;",
             "x/1\nx/y/2\nx/y/z/3\nfound x/y/2\n"),
    "tar": (
        "mkdir t; seq 1 5000 >t/f; ln -s f t/l; tar cf t.tar t; rm -r t;"
        " tar xf t.tar; tail -n 1 t/l; tar tf t.tar | sort",
        "5000\nt/\nt/f\nt/l\n"),
    "gzip": ("seq 1 50000 >f; md5sum <f >a; gzip f; gunzip f.gz; md5sum <f |"
             " cmp - a && echo same", "same\n"),
    "md5sum": ("yes abcdefg | head -c 1000000 | md5sum",
               "082285240d06de795c3206e9d86d13b4  -\n"),
    "sort": ("seq 1 3000 | sort -rn | head -n 2; printf 'b 2\\na 1\\n' |"
             " sort -k2", "3000\n2999\na 1\nb 2\n"),
    "awk": ("seq 1 1000 | awk '{ s += $1 } END { print s, s / NR }'",
            "500500 500.5\n"),
    "sed": ("printf 'one\\ntwo\\n' | sed -e 's/o/0/g' -e '2q'", "0ne\ntw0\n"),
    "dd": ("dd if=/dev/zero of=f bs=4096 count=100 2>/dev/null; wc -c <f;"
           " dd if=f of=g bs=1000 skip=1 count=2 2>/dev/null; wc -c <g",
           "409600\n2000\n"),
    "null, zero, random": (
        "echo x >/dev/null; head -c 3 /dev/zero | od -An -tx1;"
        " head -c 100000 /dev/urandom | gzip | wc -c |"
        " awk '{ print ($1 > 99000) }'", " 00 00 00\n1\n"),
    "nc": ("nc -u -l -p 5000 >got & until [ -s got ]; do echo hi | nc -u -w 1 127.0.0.1 5000;"
           " done; kill $!; head -n 1 got", "hi\n"),
    "cpio": ("mkdir d; echo hi >d/f; find d | cpio -o -H newc 2>/dev/null >a;"
             " rm -r d; cpio -id <a 2>/dev/null; cat d/f", "hi\n"),
    "renaming": ("echo 1 >a; mv a b; cp b c; cat b c; rm b; ls; mkdir d; mv c"
                 " d/; ls d; rmdir d 2>/dev/null || echo full",
                 "1\n1\nc\nc\nfull\n"),
    "permission bits": ("umask 027; touch f; mkdir d; stat -c '%a' f d",
                        "640\n750\n"),
    "ps": ("sleep 60 & until pidof sleep >/dev/null; do :; done; ps | grep -c '[s]leep 60'; kill $!; ps -o pid,args |"
           " awk '$1 == 1 { print $2 }'", "1\n/sbin/init\n"),
    "top": ("busybox top -b -n 1 | head -n 4 | cut -d: -f1 | cut -c1-3",
            "Mem\nCPU\nLoa\n  P\n"),
    "proc": (
        "cat /proc/self/stat | cut -d' ' -f2; readlink /proc/self/exe;"
        " cat /proc/self/cmdline | tr '\\0' ' '; echo; grep -c processor"
        " /proc/cpuinfo >/dev/null && echo cpus; free | grep -c Mem;"
        " uptime | grep -c load; mount | grep -c 'on /proc'",
        "(cat)\n/bin/busybox\ncat /proc/self/cmdline \ncpus\n1\n1\n1\n"),
    "date": ("[ $(date +%Y) -ge 2024 ] && echo this century;"
             " date -u -d @0 +%F", "this century\n1970-01-01\n"),
    "globs": ("touch a1 a2 b1; echo a* [ab]1 ?2", "a1 a2 a1 b1 a2\n"),
    "many files": ("for i in $(seq 1 300); do echo $i >f$i; done; ls | wc -l;"
                   " cat f* | wc -l; rm f*; ls | wc -l", "300\n300\n0\n"),
    "deep folders": ("d=.; for i in $(seq 1 40); do d=$d/d; done; mkdir -p $d;"
                     " cd $d; pwd | tr -cd / | wc -c; touch here; ls",
                     "43\nhere\n"),
    "xargs": ("seq 1 100 | xargs -n 10 echo | wc -l", "10\n"),
    "subshells": ("x=1; (x=2; cd /; echo $x); echo $x; pwd | grep -c batch",
                  "2\n1\n1\n"),
    "fifo": ("mkfifo p; echo through >p & cat p; rm p", "through\n"),
    "exec": ("exec 3>f; echo one >&3; exec 3>&-; exec <f; read x; echo got $x",
             "got one\n"),
    "tee": ("echo both | tee f | cat; cat f", "both\nboth\n"),
    "cmp and diff": ("echo a >x; echo b >y; diff x y | tail -n 2; cmp -s x y"
                     " || echo differ", "-a\n+b\ndiffer\n"),
    "vi in batch": ("printf 'one\\n' >f; printf 'Atwo\\033:wq\\r' | vi f"
                    " >/dev/null 2>&1; true", ""),
    "lua loops": (
        "lua -e 'local s = 0 for i = 1, 1000000 do s = s + i % 7 end print(s)'",
        "2999998\n"),
    "lua library": (
        "lua -e 'local t = {} for i = 1, 1000 do t[i] = i * 7919 % 1000 end"
        " table.sort(t) print(t[1], t[1000], #table.concat(t))'"
        " | tr '\\t' ' '", "0 999 2890\n"),
    "lua files": (
        "lua -e 'local f = io.open(\"f\", \"w\") for i = 1, 100 do f:write(i,"
        " \"\\n\") end f:close() local n = 0 for l in io.lines(\"f\") do"
        " n = n + l end print(n) print(pcall(error, \"x\"))' | tr '\\t' ' '",
        "5050\nfalse x\n"),
    "floating point": ("awk 'BEGIN { printf \"%.6f\\n\", atan2(0, -1) }'",
                       "3.141593\n"),
}


@functools.lru_cache(maxsize=None)
def results(smp):
    return batch({name: script for name, (script, _) in WORKLOADS.items()},
                 smp=smp)


@pytest.mark.parametrize("smp", (1, 4))
@pytest.mark.parametrize("name", WORKLOADS)
def test_workload(name, smp):
    result = results(smp)[name]
    assert result.output == WORKLOADS[name][1], result
    assert result.status == 0, result


def test_help_and_how_every_program_is_used():
    """`help` lists every program; each prints its usage, on the right stream and with
    the right status."""
    programs = sorted(set(os.listdir(f"{ROOT}/user")) & set(
        os.listdir(f"{ROOT}/build/root/bin")))
    result = vm(f"help; for p in {' '.join(programs)}; do"
                " $p --help >o 2>e </dev/null; s=$?;"
                " $p --nosuch >O 2>E </dev/null; S=$?;"
                " echo @ $p $s $(wc -c <e) $S $(wc -c <O) $(grep -ic usage o)"
                " $(wc -c <E); done")
    commands, *lines = result.output.split("\n@ ")
    for program in programs:
        assert f"\n  {program} " in commands or f"\n  {program}\n" in commands
    assert [line.split()[0] for line in lines] == programs
    for line in lines:
        name, status, errors, wrong, output, usage, message = line.split()[:7]
        if name == "tester":  # takes no options: a number or nothing
            status, errors, usage = "0", "0", "1"
        assert (status, errors, wrong, output) == ("0", "0", "2", "0"), line
        assert int(usage) > 0 and int(message) > 20, line
