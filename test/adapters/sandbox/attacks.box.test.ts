import { readFile } from "node:fs/promises";
import { createServer } from "node:net";
import { networkInterfaces } from "node:os";
import { afterAll, beforeAll, expect, it } from "vitest";
import { eventually } from "../../support/poll.ts";
import { describeSandbox, sharedBox } from "../../support/sandbox.ts";

// A machine's proxy with its password: podman hands it into containers, if it is not told otherwise.
process.env.HTTPS_PROXY = "http://user:password@proxy.clevernet.test:1";

/** Calls that a program of a hostile command makes, by name and number (x86-64); each must be refused. */
const systemCalls = `
import ctypes, errno, os, platform
libc = ctypes.CDLL(None, use_errno=True)
calls = dict(io_uring_setup=(425, 1, 0), bpf=(321, 0, 0, 0), perf_event_open=(298, 0, 0, -1, -1, 0), userfaultfd=(323, 0), keyctl=(250, 0, -3, 0),
 add_key=(248, 0, 0, 0, 0, 0), request_key=(249, 0, 0, 0, 0), mount=(165, 0, 0, 0, 0, 0), umount2=(166, 0, 0), pivot_root=(155, 0, 0), chroot=(161, 0),
 open_tree=(428, -100, 0, 0), move_mount=(429, -100, 0, -100, 0, 0), fsopen=(430, 0, 0), setns=(308, -1, 0), unshare_user=(272, 0x10000000),
 unshare_net=(272, 0x40000000), clone_user=(56, 0x10000011, 0, 0, 0, 0), ptrace=(101, 0, 0, 0, 0), process_vm_readv=(310, 1, 0, 0, 0, 0, 0), kexec_load=(246, 0, 0, 0, 0),
 init_module=(175, 0, 0, 0), finit_module=(313, -1, 0, 0), reboot=(169, 0, 0, 0, 0), swapon=(167, 0, 0), personality=(135, 0x0400000),
 name_to_handle_at=(303, -100, 0, 0, 0, 0), open_by_handle_at=(304, -1, 0, 0), clock_settime=(227, 0, 0), settimeofday=(164, 0, 0), syslog=(103, 10, 0, 0),
 acct=(163, 0), quotactl=(179, 0, 0, 0, 0), modify_ldt=(154, 0, 0, 0), vmsplice=(278, -1, 0, 0, 0), memfd_secret=(447, 0), pidfd_getfd=(438, -1, 0, 0),
 fanotify_init=(300, 0, 0), kcmp=(312, 1, 1, 0, 0, 0))
for name, (number, *given) in calls.items():
    pid = os.fork()
    if pid == 0:
        result = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(x) for x in given])
        code = ctypes.get_errno()
        # A new user namespace would go on here as a child, too.
        if result >= 0 or code not in (errno.EPERM, errno.ENOSYS, errno.EACCES):
            print(name, result, code, flush=True)
        os._exit(0)
    os.waitpid(pid, 0)
print("tried", len(calls))
`;

const sockets = `
import socket
for name, family, kind, protocol in (("vsock", 40, 1, 0), ("packet", 17, 3, 0), ("alg", 38, 5, 0), ("nftables", 16, 3, 12), ("key", 15, 3, 2), ("tipc", 30, 1, 0),
  ("rds", 21, 5, 0), ("can", 29, 3, 1), ("raw", 2, 3, 1)):
    try:
        socket.socket(family, kind, protocol)
        print("open", name)
    except OSError:
        pass
socket.socket(socket.AF_INET), socket.socket(socket.AF_INET6), socket.socket(socket.AF_UNIX)
print("tried")
`;

describeSandbox("a hostile command cannot break out", () => {
  const box = sharedBox();
  const python = (program: string) => `python3 - <<'PROGRAM'\n${program}\nPROGRAM`;

  it("it is user 1000, with no capabilities, new privileges or unfiltered system calls", async () => {
    const { stdout } = await box().sh(
      "id -u; id -G; grep -E '^(Cap(Inh|Prm|Eff|Amb)|NoNewPrivs|Seccomp):' /proc/self/status",
    );
    expect(stdout.replaceAll(/:\s+/g, " ").trim().split("\n")).toEqual([
      "1000",
      "1000",
      "CapInh 0000000000000000",
      "CapPrm 0000000000000000",
      "CapEff 0000000000000000",
      "CapAmb 0000000000000000",
      "NoNewPrivs 1",
      "Seccomp 2",
    ]);
  });

  it("on the machine it is a user of nobody's", async () => {
    const running = box().sh("sleep 2");
    const [pid] = await eventually(async () => (await box().commandPids()).length > 0 && box().commandPids(), {
      what: "its process",
    });
    expect(await readFile(`/proc/${pid}/status`, "utf8")).toMatch(/^Uid:\t1001000\t1001000\t1001000\t1001000$/m);
    await running;
  });

  it.each(["unshare --user --map-root-user id", "unshare --mount true", "unshare --net true", "unshare --pid true"])(
    "no new namespace: %s",
    async (command) => expect((await box().sh(command)).code).not.toBe(0),
  );

  it("no system call that it has no need of", async () =>
    expect((await box().sh(python(systemCalls))).stdout).toBe("tried 39\n"));

  it("no sockets but those of the internet and of files", async () =>
    expect((await box().sh(python(sockets))).stdout).toBe("tried\n"));

  it("no system calls of 32 bits, which would get past the filter", async () => {
    const program = `import ctypes, mmap
memory = mmap.mmap(-1, 4096, prot=7)
memory.write(bytes([0xB8, 20, 0, 0, 0, 0xCD, 0x80, 0xC3]))
pid = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(memory)))()
print("refused" if pid < 0 else "a process id", pid)`;
    const { stdout, signal, code } = await box().sh(python(program));
    expect([stdout.startsWith("refused"), signal !== null, (code ?? 0) > 128]).toContain(true);
  });

  it("nothing is written outside of the workspace and /tmp", async () => {
    const folders =
      "/ /etc /usr/bin /bin /opt/clevernet /opt/packages /node_modules /run /run/runner /dev /sys/fs/cgroup /proc /var /home/node";
    const { stdout } = await box().sh(
      `for f in ${folders}; do touch $f/x 2>/dev/null && echo $f; done; touch /workspace/x /tmp/x && echo done`,
    );
    expect(stdout).toBe("done\n");
  });

  it("no remounting, and no device to mount", async () => {
    const { stdout } = await box().sh(
      "mount -o remount,rw / ; mknod /tmp/disk b 8 0; mknod /tmp/mem c 1 1; ls /dev | grep -E '^(sd|vd|nvme|kvm|fuse|loop|mem|kmsg)'; ls /tmp; exit 0",
    );
    expect(stdout.split("\n").filter((line) => /disk|mem|sd|vd|kvm|fuse/.test(line))).toEqual([]);
  });

  it("/proc and /sys change nothing, and tell nothing of the machine", async () => {
    const writes =
      "/proc/sys/kernel/panic /proc/sys/kernel/core_pattern /proc/sysrq-trigger /proc/sys/vm/drop_caches /sys/kernel/uevent_helper";
    const { stdout } = await box().sh(
      `for f in ${writes}; do (echo 1 >$f) 2>/dev/null && echo wrote $f; done
       for f in /proc/kcore /proc/keys /proc/timer_list /proc/cmdline /sys/devices/virtual/dmi/id/product_name /sys/class/block/*; do head -c 1 $f 2>/dev/null | grep -q . && echo read $f; done
       dmesg 2>/dev/null | head -1; echo done`,
    );
    expect(stdout).toBe("done\n");
  });

  it("no program with the bit of another user", async () => {
    const { stdout } = await box().sh(
      "find / -xdev -perm /6000 -type f 2>/dev/null | wc -l; su -c id 2>/dev/null; true",
    );
    expect(stdout).toBe("0\n");
  });

  it("it makes no such program that counts", async () => {
    const { stdout } = await box().sh(
      "cp /usr/bin/id /workspace/id && chmod 4755 /workspace/id && /workspace/id -u; rm /workspace/id",
    );
    expect(stdout).toBe("1000\n");
  });

  it("kill -9 -1, and kill of the first process", async () => {
    await box().sh("kill -9 1; kill -TERM 1; kill -9 -1; sleep 1");
    expect([await box().isRunning(), await box().isWell()]).toEqual([true, true]);
  });

  it("nothing of the first process or the runner is read", async () => {
    const { stdout } = await box().sh(
      "for p in 1 $(pgrep -u 0); do for f in environ maps mem syscall stack; do head -c 1 /proc/$p/$f 2>/dev/null | grep -q . && echo read $p $f; done; ls /proc/$p/fd /proc/$p/root/ 2>/dev/null; done; echo done",
    );
    expect(stdout).toBe("done\n");
  });

  it("the machine's environment has not come in, and no secret of its own is in the sandbox", async () => {
    const { stdout } = await box().sh("env | cut -d= -f1 | sort | tr '\\n' ' '");
    expect(stdout).not.toMatch(/proxy|CERT|TOKEN|KEY|PASSWORD|SECRET/i);
    expect((await box().sh("env; cat /proc/1/environ 2>/dev/null")).stdout).not.toContain("proxy.clevernet.test");
    expect(stdout.split(" ")).toEqual(expect.arrayContaining(["HOME", "LANG", "PATH", "PWD"]));
  });

  it("binary output and an argument that is too long harm nobody", async () => {
    const { stdout, code } = await box().sh(`printf '\\033]0;x\\007\\000\\377end'; exit 3`);
    expect([code, stdout.length > 5]).toEqual([3, true]);
    expect((await box().sh("/bin/echo $(head -c 3000000 /dev/zero | tr '\\0' a)")).code).toBe(126);
    expect(await box().isWell()).toBe(true);
  });

  it("a symbolic link leads out of nothing", async () => {
    const { stdout } = await box().sh(
      "cd /workspace; ln -sf /etc/passwd l; (echo x >l) 2>/dev/null && echo wrote; ln -sf /proc/1/root/etc/shadow s; cat s 2>/dev/null; rm -f l s; echo done",
    );
    expect(stdout).toBe("done\n");
  });

  it("what it puts first into its path is not run by the runner or by whoever connects", async () => {
    const trap = "#!/bin/sh\\nid -u >>/workspace/caught\\n";
    await box().sh(
      `mkdir -p ~/.local/bin && for p in python3 socat bash node; do printf '${trap}' >~/.local/bin/$p; chmod 755 ~/.local/bin/$p; done; cp ~/.local/bin/* /workspace/`,
    );
    await box().host.stop(box().id);
    await box().host.start(box().id);
    const other = box().connect();
    try {
      box().boot = await other.boot();
    } finally {
      await other.close();
    }
    expect(
      (await box().sh("cat /workspace/caught; rm -rf ~/.local/bin /workspace/{python3,socat,bash,node}")).stdout,
    ).toBe("");
  });

  it("its own programs are found, behind those of the image", async () => {
    const { stdout } = await box().sh(
      `mkdir -p ~/.local/bin && for p in mine git; do printf '#!/bin/sh\\necho mine' >~/.local/bin/$p; chmod 755 ~/.local/bin/$p; done; mine; git --version; rm -r ~/.local`,
    );
    expect(stdout).toMatch(/^mine\ngit version/);
  });

  it("npm, Express, venv, pip and git still work", async () => {
    const { stdout, stderr } = await box().sh(
      `cd $(mktemp -d) && node -e "require('express')()" && echo "import e from 'express'; console.log(typeof e)" >x.mjs && node x.mjs && npm init -y >/dev/null &&
       python3 -m venv v && v/bin/pip --version | cut -d' ' -f1 && git init -q . && git status --short | wc -l && rg --files | wc -l >/dev/null && echo done`,
      { seconds: 60 },
    );
    expect({ stdout, stderr }).toEqual({ stdout: expect.stringMatching(/^function\npip\n\d+\ndone\n$/), stderr: "" });
  });
});

describeSandbox("a hostile command reaches no network", () => {
  const box = sharedBox();
  const server = createServer((socket) => socket.end("reached\n"));
  let port = 0;
  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, "0.0.0.0", resolve));
    const address = server.address();
    if (typeof address === "object" && address) port = address.port;
  });
  afterAll(() => void server.close());

  const addresses = [
    "127.0.0.1",
    "169.254.169.254",
    "10.88.0.1",
    "10.0.2.2",
    "192.0.2.2",
    "1.1.1.1",
    ...Object.values(networkInterfaces())
      .flatMap((list) => list?.map(({ address, family }) => (family === "IPv4" ? address : [])) ?? [])
      .flat(),
  ];
  it.each([...new Set(addresses)])("not the machine or another by %s", async (address) => {
    const { stdout } = await box().sh(
      `timeout 4 bash -c 'cat </dev/tcp/${address}/${port}' 2>/dev/null; timeout 4 bash -c ': </dev/tcp/${address}/80' 2>/dev/null && echo open; echo done`,
    );
    expect(stdout).toBe("done\n");
  });

  it("not by a name", async () => {
    const names = "example.com host.containers.internal localhost.localdomain metadata.google.internal";
    expect(
      (await box().sh(`for n in ${names}; do timeout 5 getent ahostsv4 $n | grep -v '^127\\.'; done; echo done`))
        .stdout,
    ).toBe("done\n");
  });

  it("has its own loopback alone, and no abstract sockets or addresses of the machine", async () => {
    const { stdout } = await box().sh(
      "cut -d: -f1 /proc/net/dev | tail -n +3 | tr -d ' '; grep -c @ /proc/net/unix; wc -l </etc/hosts; cat /etc/resolv.conf | wc -l",
    );
    expect(stdout.split("\n")[0]).toBe("lo");
    expect(stdout.split("\n")[1]).toBe("0");
  });

  it("the machine's own hosts and names have not come in", async () => {
    const hosts = (await readFile("/etc/hosts", "utf8"))
      .split("\n")
      .filter((line) => /^\d/.test(line) && !/localhost/.test(line));
    const { stdout } = await box().sh("cat /etc/hosts; hostname");
    for (const line of hosts) expect(stdout).not.toContain(line);
    expect(stdout).toMatch(/sandbox\n$/);
  });
});
