# Tells how a sandbox looks from inside, as one JSON object. It runs as a command does.
import json, os, shutil, socket, subprocess


def read(path):
    try:
        with open(path) as file:
            return file.read().strip()
    except OSError:
        return None


def status():
    return dict(line.split(":\t", 1) for line in read("/proc/self/status").split("\n") if ":\t" in line)


def may_open(family, kind, protocol=0):
    try:
        socket.socket(family, kind, protocol).close()
        return True
    except OSError:
        return False


def may_write(folder):
    try:
        with open(f"{folder}/.probe", "w"):
            pass
        os.unlink(f"{folder}/.probe")
        return True
    except OSError:
        return False


def megabytes(path):
    try:
        stat = os.statvfs(path)
        return stat.f_blocks * stat.f_frsize // 1048576
    except OSError:
        return None


def processors():
    both = (read("/sys/fs/cgroup/cpu.max") or "").split()
    quota = both[0] if both else read("/sys/fs/cgroup/cpu/cpu.cfs_quota_us")
    period = both[1] if both else read("/sys/fs/cgroup/cpu/cpu.cfs_period_us")
    return int(quota) / int(period) if quota and period and quota.lstrip("-").isdigit() else None


def version(*words):
    if not shutil.which(words[0]):
        return None
    run = subprocess.run(words, capture_output=True, text=True, timeout=20)
    return run.stdout.split("\n")[0].strip() if run.returncode == 0 else None


def number(*paths):
    for path in paths:
        text = read(path)
        if text and text.isdigit():
            return int(text)
    return None


own = status()
print(
    json.dumps(
        {
            "uid": os.getuid(),
            "capabilities": own["CapEff"],
            "noNewPrivileges": own["NoNewPrivs"],
            "seccomp": own["Seccomp"],
            "mayMakeUser": subprocess.run(["unshare", "--user", "true"], capture_output=True).returncode == 0,
            "sockets": [
                name
                for name, family, kind, protocol in (
                    ("AF_VSOCK", 40, socket.SOCK_STREAM, 0),
                    ("AF_ALG", 38, socket.SOCK_SEQPACKET, 0),
                    ("AF_PACKET", 17, socket.SOCK_RAW, 0),
                    ("NETLINK_NETFILTER", 16, socket.SOCK_RAW, 12),
                )
                if may_open(family, kind, protocol)
            ],
            "writable": [folder for folder in ("/", "/etc", "/usr", "/opt/clevernet", "/run/runner", "/dev") if may_write(folder)],
            "interfaces": [line.split(":")[0].strip() for line in read("/proc/net/dev").split("\n")[2:]],
            "proxies": [name for name in os.environ if name.lower().endswith("_proxy")],
            "memory": number("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"),
            "processes": number("/sys/fs/cgroup/pids.max", "/sys/fs/cgroup/pids/pids.max"),
            "cpus": processors(),
            "tmp": megabytes("/tmp"),
            "shared": megabytes("/dev/shm"),
            "programs": {
                "node": version("node", "--version"),
                "npm": version("npm", "--version"),
                "express": version("node", "-p", "require('express/package.json').version"),
                "python": version("python3", "--version"),
                "pip": version("pip", "--version"),
                "git": version("git", "--version"),
                "ripgrep": version("rg", "--version"),
                "socat": version("/usr/bin/socat", "-V") and "socat",
            },
            "chromium": version("node", "-p", "require('playwright-core/package.json').version")
            if os.path.exists("/usr/local/bin/clevernet-chromium")
            else None,
        }
    )
)
