import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import sharp from "sharp";
import { afterAll, beforeAll, describe, expect, inject, it, vi } from "vitest";
import { downloadAs } from "../support/media.ts";
import { isResult, obey, resultOf } from "../support/obedient.ts";
import { describeSandbox } from "../support/sandbox.ts";
import { localHost } from "../support/sandbox-host.ts";
import { Stage } from "../support/stage.ts";
import type { Message, TestUser } from "../support/user.ts";
import { LocalWeb } from "../support/web.ts";

/** The page that the seed asks for. */
const app = `const express = require("express");
express().get("/", (_, answer) => answer.send(\`<!doctype html><title>Hello</title><body
 style="margin:0;background:#39ff14;font:bold 80px sans-serif;display:grid;place-items:center;height:100vh">Hello Matrix\`)).listen(3000);
`;
const green = [57, 255, 20] as const;

// On a busy machine a container takes its time.
vi.setConfig({ testTimeout: 180_000 });

describeSandbox("a conversation's computer", () => {
  describe("on the embedded database", () => {
    const database = "embedded";
    let stage: Stage;
    let ann: TestUser;
    /** Stands on the machine itself: nothing in a sandbox may reach it. */
    const inside = createServer((_, answer) => answer.end("secret of the house"));
    let web: LocalWeb;
    beforeAll(async () => {
      const sandbox = inject("sandbox");
      web = await LocalWeb.start();
      await new Promise<void>((done) => inside.listen(0, "127.0.0.1", done));
      stage = await Stage.set({
        database,
        permissions: { "@ann:clevernet.test": "operate" },
        config: {
          web: { allow: [web.door] },
          sandbox: {
            kind: "podman",
            image: "browser" in sandbox ? sandbox.browser : "",
            network: ["npm", "allowed.example.com"],
          },
        },
      });
      obey(stage.model);
      await stage.bridge.start();
      ann = await stage.user("ann");
    });
    afterAll(async () => {
      inside.close();
      // Its end removes the container in which it loads pages.
      expect(await stage.bridge.stop()).toBe(0);
      for (const { name } of await stage.query<{ name: string }>("select name from sandboxes"))
        await localHost().remove(name);
      await stage.strike();
      await web.stop();
    });

    const command = async (room: string, line: string): Promise<string> => {
      const id = await ann.say(room, line);
      const isAnswer = (message: Message) => message.content["org.clevernet.command"] === id;
      return (await ann.waitForMessage(room, isAnswer, { within: 60_000 })).body;
    };
    let calls = 0;
    const call = async (room: string, tool: string, input: object): Promise<string> => {
      const number = ++calls;
      await ann.mention(room, stage.agentId(), `do ${number} ${tool} ${JSON.stringify(input)}`);
      return await resultOf(ann, room, number, 60_000);
    };
    const isImage = ({ content }: Message) => content.msgtype === "m.image";
    const share = async (png: Buffer) => {
      const { data, info } = await sharp(png).removeAlpha().raw().toBuffer({ resolveWithObject: true });
      let hits = 0;
      for (let at = 0; at < data.length; at += 3)
        if (green.every((value, channel) => data[at + channel] === value)) hits++;
      return hits / (info.width * info.height);
    };

    it("makes the seed's page: written, served, and shown in the room and to the model", async () => {
      const room = await stage.directRoom(ann);
      await call(room, "FS_WriteFile", { path: "sandbox:/app.js", content: app });
      await call(room, "run_command", { command: "exec node app.js", background: true });
      await call(room, "run_command", { command: "until curl -s localhost:3000 >/dev/null; do sleep 0.2; done" });
      const shown = await call(room, "take_screenshot", { url: "http://localhost:3000" });
      expect(shown).toContain('http://localhost:3000/: status 200, title "Hello"');
      const { content } = await ann.waitForMessage(room, isImage);
      expect(content).toMatchObject({ body: "localhost-3000.png", info: { mimetype: "image/png", w: 1_280, h: 720 } });
      const png = await downloadAs(stage.homeserver, ann, String(content.url));
      const part = await share(png);
      expect(part).toBeGreaterThan(0.9);
      expect(part).toBeLessThan(0.999);
      const given = await stage.model.request((one) => (one.body.messages.at(-1)?.images ?? []).length > 0);
      expect(given.body.messages.at(-1)?.images?.[0]).toMatch(/^data:image\/(?:png|jpeg|webp);base64,/);
    });

    it("shows a person its pages, and lets the operator reach its servers", async () => {
      const room = await stage.directRoom(ann);
      await command(room, "!run --background exec python3 -m http.server 8000 -d /usr/share/doc");
      await command(room, "!run until curl -s localhost:8000 >/dev/null; do sleep 0.2; done");
      expect(await command(room, "!shot http://localhost:8000/nothing")).toContain("status 404");
      await ann.waitForMessage(room, isImage);
      const [, port] = /127\.0\.0\.1:(\d+)/.exec(await command(room, "!port 8000")) ?? [];
      expect(await (await fetch(`http://127.0.0.1:${port}/`)).text()).toContain("Directory listing");
      expect(await command(room, "!port 8001")).toContain("Nothing listens on port 8001 of the computer");
      for (const [url, says] of [
        ["file:///etc/passwd", "and not of file:"],
        ["nothing", "is no address"],
        ["http://localhost:9", "net::ERR_UNSAFE_PORT"],
        ["http://localhost:4321", "nothing listens on this port"],
        ["https://forbidden.example.com", "its host is not allowed"],
      ] as const)
        expect(await command(room, `!shot ${url}`)).toContain(says);
    });

    it("is not needed for a page of the web that is empty without scripts: it has a container of its own", async () => {
      const room = await stage.directRoom(ann);
      const text = "Only a script has written this. ";
      web.pages.set("/app", {
        body: `<title>App</title><body style="background:#39ff14"><script>document.body.append("${text}".repeat(20))</script>`,
      });
      const shown = await command(room, `!browse --screenshot ${web.url("/app")}`);
      expect(shown).toContain('loadedBy="browser"');
      expect(shown).toContain(text.repeat(20).trim());
      const { content } = await ann.waitForMessage(room, isImage);
      expect(await share(await downloadAs(stage.homeserver, ann, String(content.url)))).toBeGreaterThan(0.7);
    });

    it("opens its files in windows that show them as they are now, and finds words in them", async () => {
      const room = await stage.directRoom(ann);
      await command(room, "!run mkdir src; echo 'first line' > src/log.txt");
      await call(room, "FS_OpenFile", { path: "sandbox:/src/log.txt" });
      await command(room, "!run echo 'second line' >> src/log.txt");
      await ann.mention(room, stage.agentId(), `do ${++calls} FS_Grep {"glob":"sandbox:/**","regex":"second"}`);
      await ann.waitForMessage(room, isResult(calls), { within: 60_000 });
      expect(await ann.messages(room).then((all) => all.find(isResult(calls))?.body)).toContain("second line");
      const seen = await stage.model.request((one) => JSON.stringify(one.body).includes("sandbox:/src/log.txt"));
      expect(JSON.stringify(seen.body)).toContain("first line");
      const last = await stage.model.request((one) => JSON.stringify(one.body).includes(`do ${calls} `));
      expect(JSON.stringify(last.body)).toMatch(/sandbox:\/src\/log\.txt[\s\S]*second line/);
      expect(await command(room, "!ls sandbox:/")).toContain("src/");
    });

    it("speaks with allowed hosts alone, and says with whom", async () => {
      const room = await stage.directRoom(ann);
      const { port } = inside.address() as AddressInfo;
      const told = await call(room, "run_command", {
        command: `curl -sS -m 9 https://forbidden.example.com 2>&1; curl -sS -m 5 http://127.0.0.1:${port} 2>&1; curl -sS -m 5 --noproxy '' -x http://127.0.0.1:3128 http://127.0.0.1:${port} 2>&1; true`,
      });
      expect(told).toContain("403");
      expect(told).toContain("only names of hosts are allowed");
      expect(told).not.toContain("secret of the house");
      expect(told).toMatch(/<network host="forbidden\.example\.com" bytesSent="0" bytesReceived="0" refused="1" ?\/>/);
    });

    it("leaves nothing behind that is not told", async () => stage.check());
  });
});
