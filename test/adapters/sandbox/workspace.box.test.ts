import { randomBytes } from "node:crypto";
import { beforeEach, expect, it } from "vitest";
import { OtherMark, Workspace } from "../../../src/adapters/sandbox/workspace.ts";
import { eventually } from "../../support/poll.ts";
import { describeSandbox, sharedBox } from "../../support/sandbox.ts";

const megabyte = 1 << 20;

describeSandbox("the files of a sandbox", () => {
  const box = sharedBox();
  let files: Workspace;
  beforeEach(async () => {
    files = new Workspace(box());
    await box().sh("chmod -R u+rwX /workspace; rm -rf /workspace/* /workspace/.[!.]*; mkdir /workspace/.home");
  });
  const read = async (path: string, most = megabyte) => (await files.read(path, { most, isWhole: true }))?.content;
  const names = async (path = "/") => (await files.list(path, 1_000)).map((entry) => entry.path);

  it("writes and reads text and bytes, and makes the folders on the way", async () => {
    const bytes = randomBytes(3 * megabyte);
    await files.write("/a/b/ü ñ.txt", Buffer.from("one\ntwo\n"));
    await files.write("/bytes.bin", bytes);
    await files.write("/empty", Buffer.alloc(0));
    expect((await read("/a/b/ü ñ.txt"))?.toString()).toBe("one\ntwo\n");
    expect((await read("/bytes.bin", 4 * megabyte))?.equals(bytes)).toBe(true);
    expect((await read("/empty"))?.length).toBe(0);
    const { stdout } = await box().sh("stat -c '%u %a' a a/b 'a/b/ü ñ.txt'; ls -A a/b | wc -l");
    expect(stdout).toBe("1000 755\n1000 755\n1000 644\n1\n");
  });

  it("reads a part of a file, and says what there is", async () => {
    await box().sh("seq 1000 > n.txt; truncate -s 2G huge.bin");
    const part = await files.read("/n.txt", { start: 4, most: 6 });
    expect(part?.content.toString()).toBe("3\n4\n5\n");
    expect(await files.stat("/n.txt")).toMatchObject({ kind: "file", size: 3_893 });
    expect(await files.stat("/none")).toBeUndefined();
    expect(await read("/none")).toBeUndefined();
    expect((await files.read("/huge.bin", { most: 100 }))?.content).toEqual(Buffer.alloc(100));
    await expect(read("/huge.bin")).rejects.toThrow("has 2147483648 bytes, which is too much");
  });

  it("lists what is below a place, and goes into folders of packages only when they are named", async () => {
    await box().sh(
      "mkdir -p src/deep node_modules/x .git/refs; touch src/deep/a.js src/b.js node_modules/x/i.js .git/HEAD z; rmdir .home",
    );
    expect(await names()).toEqual([
      "/",
      "/.git",
      "/node_modules",
      "/src",
      "/src/b.js",
      "/src/deep",
      "/src/deep/a.js",
      "/z",
    ]);
    expect(await names("/node_modules")).toEqual(["/node_modules", "/node_modules/x", "/node_modules/x/i.js"]);
    expect(await names("/z")).toEqual(["/z"]);
    expect(await names("/none")).toEqual([]);
    expect(await files.list("/", 3)).toHaveLength(3);
  });

  it("lists twenty thousand files", async () => {
    await box().sh("mkdir many; cd many; seq -f f%05g 20000 | xargs touch");
    expect(await files.list("/many", 50_000)).toHaveLength(20_001);
    const all = (await files.list("/many", 50_000)).slice(1).map(({ path }) => path);
    expect((await files.remove(all)).gone).toHaveLength(20_000);
    expect(await names("/many")).toEqual(["/many"]);
  });

  it("writes only over the version that is expected", async () => {
    const { mark } = await files.write("/a", Buffer.from("1"), 0);
    await expect(files.write("/a", Buffer.from("2"), 0)).rejects.toThrow(OtherMark);
    const second = await files.write("/a", Buffer.from("2"), mark);
    await expect(files.write("/a", Buffer.from("3"), mark)).rejects.toMatchObject({ mark: second.mark });
    expect((await files.stat("/a"))?.mark).toBe(second.mark);
    expect((await read("/a"))?.toString()).toBe("2");
    await expect(files.write("/b", Buffer.from("3"), 7)).rejects.toMatchObject({ mark: 0 });
    expect(await names()).toEqual(["/", "/.home", "/a"]);
  });

  it("keeps the mode of a file that it replaces", async () => {
    await box().sh("echo x > run.sh; chmod 755 run.sh");
    await files.write("/run.sh", Buffer.from("y"));
    expect((await box().sh("stat -c %a run.sh")).stdout).toBe("755\n");
  });

  it("lets a reader see the old content or the new one, and nothing between", async () => {
    const contents = ["a", "b"].map((letter) => Buffer.from(letter.repeat(2 * megabyte)));
    await files.write("/f", contents[0] ?? Buffer.alloc(0));
    const writing = (async () => {
      for (let turn = 0; turn < 6; turn++) await files.write("/f", contents[turn % 2] ?? Buffer.alloc(0));
    })();
    for (let turn = 0; turn < 6; turn++) {
      const seen = await read("/f", 3 * megabyte);
      expect(contents.some((one) => seen?.equals(one))).toBe(true);
    }
    await writing;
  });

  it("moves files and folders, and never over something", async () => {
    await box().sh("mkdir -p a/node_modules; echo x > a/node_modules/i; echo y > b");
    await files.move("/a", "/sub/c");
    expect((await read("/sub/c/node_modules/i"))?.toString()).toBe("x\n");
    await expect(files.move("/b", "/sub/c/node_modules/i")).rejects.toThrow("something is there already");
    expect(await files.move("/none", "/x")).toBeUndefined();
    await expect(files.move("/sub", "/sub/c/d")).rejects.toThrow("cannot be moved into itself");
    await expect(files.move("/", "/x")).rejects.toThrow("The workspace itself");
  });

  it("removes folders with all that is in them, and says which were there", async () => {
    await box().sh("mkdir -p a/b; touch a/b/c; chmod 0 a/b; touch d");
    expect(await files.remove(["/a", "/d", "/none"])).toEqual({ gone: ["/a", "/d"], files: 2 });
    expect(await names()).toEqual(["/", "/.home"]);
    await expect(files.remove(["/"])).rejects.toThrow("The workspace itself");
  });

  it("removes a link and not what it leads to", async () => {
    await box().sh("mkdir keep; touch keep/x; ln -s keep l; ln -s /etc e");
    expect((await files.remove(["/l", "/e"])).gone).toEqual(["/e", "/l"]);
    expect(await names("/keep")).toEqual(["/keep", "/keep/x"]);
  });

  it("follows links that stay inside, also absolute ones", async () => {
    await box().sh(
      "mkdir -p a/b; echo in > a/b/f; ln -s a/b rel; ln -s /workspace/a/b abs; ln -s ../../a/b/f a/b/up; ln -s abs/f two",
    );
    for (const path of ["/rel/f", "/abs/f", "/a/b/up", "/two", "/abs/../b/up"])
      expect([path, (await read(path))?.toString()]).toEqual([path, "in\n"]);
    await files.write("/two", Buffer.from("new"));
    expect((await read("/a/b/f"))?.toString()).toBe("new");
    expect((await files.list("/", 100)).find(({ path }) => path === "/two")?.kind).toBe("link");
  });

  it.each([
    ["a link to a file outside", "ln -s /etc/passwd x", "/x"],
    ["a link to a folder outside", "ln -s /etc x", "/x/passwd"],
    ["a link that climbs", "ln -s ../../etc/passwd x", "/x"],
    ["a name that begins like the workspace", "ln -s /workspacex x", "/x"],
    ["dots", "true", "/../etc/passwd"],
    ["links that name a process's root", "ln -s /proc/self/root/etc/passwd x", "/x"],
  ])("reads and writes nothing by %s", async (_, script, path) => {
    await box().sh(script);
    await expect(read(path)).rejects.toThrow("leads out of /workspace");
    await expect(files.write(path, Buffer.from("x"))).rejects.toThrow("leads out of /workspace");
    await expect(files.list(path, 10)).rejects.toThrow("leads out of /workspace");
  });

  it.each([
    ["a fifo", "mkfifo x", "is a fifo, and no file"],
    ["a socket", "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"x\")'", "is a socket, and no file"],
    ["a folder", "mkdir x", "is a folder, and no file"],
    ["links in a circle", "ln -s y x; ln -s x y", "leads in a circle"],
    ["what its user has closed", "echo a > x; chmod 0 x", "chmod"],
  ])("answers at once for %s", async (_, script, says) => {
    await box().sh(script);
    const begin = performance.now();
    await expect(read("/x")).rejects.toThrow(says);
    expect(performance.now() - begin).toBeLessThan(5_000);
  });

  it("refuses a path through a file, and a name that is too long", async () => {
    await box().sh("touch x");
    await expect(files.write("/x/y", Buffer.from("1"))).rejects.toThrow(
      "a file stands where one of its folders should be",
    );
    await expect(files.write(`/${"n".repeat(300)}`, Buffer.from("1"))).rejects.toThrow("name that is too long");
  });

  it("reads nothing outside while somebody turns a folder into a link and back", async () => {
    await box().sh("mkdir d; echo inside > d/passwd; echo inside > passwd");
    const id = "turner";
    const script =
      "import os\nwhile True:\n  os.rename('d','e'); os.symlink('/etc','d'); os.unlink('d'); os.rename('e','d')";
    await box().runner.start({ id, boot: box().boot, argv: ["python3", "-c", script], seconds: 60 });
    const seen = new Set<string>();
    for (let turn = 0; turn < 40; turn++) {
      const text = await read("/d/passwd").then(
        (content) => content?.toString() ?? "missing",
        (error: unknown) =>
          error instanceof Error ? error.message.replace(/.*(leads out|stands where).*/, "$1") : "?",
      );
      seen.add(text);
    }
    await box().runner.kill(id);
    expect(
      [...seen].filter(
        (one) =>
          ![
            "inside\n",
            "missing",
            "leads out",
            "stands where",
            "sandbox:/d/passwd is a link that leads in a circle: remove it, or name another file.",
          ].includes(one),
      ),
    ).toEqual([]);
  });

  it("is open again with the next command, where a command has closed it to everybody", async () => {
    await files.write("/f", Buffer.from("1"));
    await box().sh("chmod 000 /workspace");
    expect((await read("/f"))?.toString()).toBe("1");
    expect((await box().sh("stat -c %a /workspace")).stdout).toBe("700\n");
    await box().sh("chmod 755 /workspace");
  });

  it("says so where its program is killed, and keeps no command", async () => {
    const id = "killer";
    const argv = ["bash", "-c", "while :; do pkill -9 -f -- '-I[S] -c'; done"] as const;
    await box().runner.start({ id, boot: box().boot, argv: [...argv], seconds: 60 });
    await eventually(
      async () => {
        const said = await read("/f").then(
          () => "",
          (error: unknown) => String(error),
        );
        return /UserError: The computer gave no answer/.test(said);
      },
      { what: "a program that is killed", within: 60_000 },
    );
    await box().runner.kill(id);
    await eventually(async () => (await box().runner.list()).every((one) => !one.id.startsWith("own-")), {
      what: "nothing kept",
      within: 60_000,
    });
    expect(await box().isWell()).toBe(true);
  }, 150_000);

  it("takes nothing of the environment, the folder or the packages of the computer's user", async () => {
    await box().sh("echo 'raise SystemExit(9)' | tee json.py os.py .home/sitecustomize.py; export PYTHONSTARTUP=x; ls");
    await files.write("/f", Buffer.from("1"));
    expect((await read("/f"))?.toString()).toBe("1");
  });
});

describeSandbox("the files of a sandbox that takes no large ones", () => {
  const box = sharedBox({ fileMegabytes: 1 });

  it("says so, and leaves nothing behind", async () => {
    const files = new Workspace(box());
    await files.write("/f", Buffer.from("1"));
    await expect(files.write("/f", Buffer.alloc(2 * megabyte))).rejects.toThrow(
      "larger than a file of the computer may be",
    );
    await box().sh("rm -rf .home");
    expect((await files.list("/", 100)).map(({ path, size }) => [path, size]).slice(1)).toEqual([["/f", 1]]);
  });
});
