import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Computed, charactersMost } from "../../../src/adapters/sandbox/evaluate.ts";
import { Interpreter } from "../../../src/adapters/sandbox/interpreter.ts";

const interpreter = new Interpreter();
const now = new Date("2026-03-28T12:00:00Z");
const noSignal = new AbortController().signal;
let strangers = 0;
const compute = (
  code: string,
  { timeZone = "UTC", signal = noSignal, people = [`@stranger${++strangers}:test`] } = {},
): Promise<Computed> => interpreter.run({ code, now, timeZone }, people, signal);
const resultOf = async (code: string, options?: { timeZone?: string; people?: string[] }) => {
  const { value, error } = await compute(code, options);
  return error ?? value;
};
const errorOf = async (code: string) => (await compute(code)).error;
const word = "Rindfleischetikettierungsüberwachungsaufgabenübertragungsgesetz";

describe("a value", () => {
  it.each([
    ["the Rs in Strawberry", '[..."Strawberry"].filter((c) => c.toLowerCase() === "r").length', "3"],
    ["the letters of a long word", `[..."${word}"].length`, "63"],
    ["a number beyond 2^53", "2n ** 100n", "1267650600228229401496703205376"],
    ["a text", '"a\\nb"', "a\nb"],
    ["nothing", "null", "null"],
    ["the negative zero", "-0", "-0"],
    [
      "an object, as JSON",
      "({ a: [1, 2n, NaN], d: new Date(0), f() {} })",
      '{"a":[1,"2","NaN"],"d":"1970-01-01T00:00:00.000Z","f":"[function f]"}',
    ],
    ["a map with texts for keys", 'new Map([["a", new Set([1, 2])]])', '{"a":[1,2]}'],
    ["another map", "new Map([[1, 2]])", "[[1,2]]"],
    ["a date", "new Date(0)", "1970-01-01T00:00:00.000Z"],
    ["bytes", "new Uint8Array([1, 2])", "[1,2]"],
    ["what is awaited", "await Promise.resolve(7)", "7"],
    ["what a promise comes to", "(async () => 7)()", "7"],
    ["what is defined before", "function f(n) { return n < 2 ? n : f(n - 1) + f(n - 2) }\nf(20)", "6765"],
  ])("%s", async (_, code, value) => expect(await resultOf(code)).toBe(value));

  it("is any text, as it is", () =>
    fc.assert(
      fc.asyncProperty(fc.string({ unit: "binary" }), async (text) => {
        expect(await resultOf(JSON.stringify(text))).toBe(text.toWellFormed());
      }),
      { numRuns: 50 },
    ));

  it("is cut to what can be read, and says so", async () => {
    expect(await resultOf('"x".repeat(1e6)')).toBe(
      `${"x".repeat(charactersMost)}\n[992000 more characters are left out]`,
    );
  });

  it("and what was written are cut each by itself", async () => {
    const { printed, value } = await compute('for (let i = 0; i < 1e4; i++) console.log("a line"); "x".repeat(9000)');
    expect(printed).toBe(`${"a line\n".repeat(1_143).slice(0, charactersMost)}\n[61999 more characters are left out]`);
    expect(value).toContain("[1000 more characters are left out]");
  });

  it("may be missing; what was written is there", async () => {
    expect(await compute('console.log("a", { b: 1 }); console.log(2); undefined')).toEqual({
      printed: 'a {"b":1}\n2',
      value: undefined,
      error: undefined,
    });
  });
});

describe("the world of a computation", () => {
  it("stands still at the moment of the call", async () => {
    expect(
      await resultOf("const t = Date.now(); for (let i = 0; i < 1e5; i++); Date.now() - t + new Date().toISOString()"),
    ).toBe("02026-03-28T12:00:00.000Z");
  });

  it("is the same for the same call, chance too", async () => {
    expect(await resultOf("Math.random()")).toBe(await resultOf("Math.random()"));
  });

  it("has the local times of the agent's zone, on both sides of a change of clocks", async () => {
    const hours = "[28, 29].map((day) => new Date(2026, 2, day, 12).toISOString().slice(11, 13)).join()";
    expect(await resultOf(hours, { timeZone: "Europe/Berlin" })).toBe("11,10");
    expect(await resultOf(hours, { timeZone: "America/New_York" })).toBe("16,16");
  });

  it("keeps nothing for the next", async () => {
    await compute("globalThis.kept = 1; Array.prototype.kept = 1; Object.prototype.kept = 1");
    expect(await resultOf("typeof kept + [].kept + ({}).kept")).toBe("undefinedundefinedundefined");
  });

  it.each([
    "fetch",
    "process",
    "require",
    "WebAssembly",
    "setTimeout",
    "Deno",
    "std",
    "os",
    "print",
    "performance.timeOrigin.x",
  ])("has no %s", async (name) =>
    expect(await errorOf(`${name}("x")`)).toMatch(/not defined|not a function|undefined/),
  );

  it.each([
    ['import fs from "node:fs"'],
    ['await import("node:fs")'],
    ['globalThis.constructor.constructor("return process")()'],
    ['(() => {}).constructor.constructor("return this")().process.exit()'],
    ['console.log.constructor("return process")()'],
    ["Error.prepareStackTrace = (_, frames) => frames[0].getThis().process; process.exit()"],
    ["new WebAssembly.Memory({ initial: 1 })"],
  ])("has no way out: %s", async (code) => expect(await errorOf(code)).toMatch(/^(Reference|Syntax|Type)Error: /));

  it("is only its own, whatever is done to its prototypes", async () => {
    const code = `Promise.prototype.then = Array.prototype.map = JSON.stringify = () => { throw 1 };
      Object.prototype.__proto__ = null; Object.defineProperty(Object.prototype, "value", { get() { throw 2 } }); ({})`;
    expect(await errorOf(code)).toBeDefined();
    expect(await resultOf("[1].map((n) => n + 1)")).toBe("[2]");
  });
});

describe("an error", () => {
  it.each([
    ["let a = 1;\n\na.b.c", "TypeError: cannot read property 'c' of undefined (line 3, column 1)"],
    ["let a = 1;\nlet b = ;", "SyntaxError: unexpected token in expression: ';' (line 2, column 9)"],
    ["throw { no: 1 }", 'thrown: {"no":1}'],
    ["const o = {}; o.o = o; o", "TypeError: circular reference"],
    ["await new Promise(() => {})", "it waits for something that never comes"],
    ["const f = () => f(); f()", expect.stringMatching(/^RangeError: Maximum call stack size exceeded/)],
    ["let r = []; for (let i = 0; i < 1e5; i++) r = [r]; JSON.stringify(r)", expect.stringMatching(/^RangeError: /)],
    ["const a = []; for (;;) a.push(new ArrayBuffer(1e7))", "it needs more than 64 MB of memory"],
    ["new ArrayBuffer(1e9)", "it needs more than 64 MB of memory"],
  ])("of %s", async (code, error) => expect(await errorOf(code)).toEqual(error));

  it("leaves what was written before it", async () => {
    expect(await compute('console.log("here"); nowhere')).toMatchObject({
      printed: "here",
      error: "ReferenceError: nowhere is not defined (line 1, column 22)",
    });
  });
});

describe("a computation that does not end", () => {
  it.each([
    ["a loop that catches", "for (;;) try { for (;;); } catch {}"],
    ["a loop when the result is shown", "({ toJSON() { for (;;); } })"],
    ["a loop in a promise", "Promise.resolve().then(() => { for (;;); })"],
    ["what the interpreter does not interrupt", 'new Array(1e9) + ""'],
  ])(
    "is stopped after 2 seconds of a processor, however busy that is: %s",
    async (_, code) => {
      expect(await errorOf(code)).toBe("it was stopped after 2 seconds of processor time");
    },
    90_000,
  );

  it("ends at once with its signal, and the next one runs", async () => {
    const controller = new AbortController();
    const endless = compute("for (;;);", { signal: controller.signal });
    const next = resultOf("1 + 1");
    controller.abort(new Error("stopped by @ann:test"));
    await expect(endless).rejects.toThrow("stopped by @ann:test");
    expect(await next).toBe("2");
  });

  it("does not begin where its signal is aborted before its turn", async () => {
    const signal = AbortSignal.abort(new Error("too late"));
    await expect(compute("1", { signal })).rejects.toThrow("too late");
  });
});

describe("of several computations", () => {
  const [ann, ben, cat] = ["@ann:test", "@ben:test", "@cat:test"];
  const endless = "for (;;);";

  it("one person's run one after the other, and keep nobody else waiting", async () => {
    const order: string[] = [];
    const done = (name: string) => () => void order.push(name);
    const all = [
      ...["a1", "a2"].map((name) => compute(endless, { people: [ann] }).then(done(name))),
      compute("1", { people: [ann, ben] }).then(done("both")),
      compute("1", { people: [ben] }).then(done("b")),
      compute(endless, { people: [cat] }).then(done("c")),
    ];
    await Promise.all(all);
    expect(order[0]).toBe("b");
    expect(order.indexOf("c")).toBeLessThan(order.indexOf("a2"));
    expect(order.filter((name) => name.startsWith("a") || name === "both")).toEqual(["a1", "a2", "both"]);
  }, 120_000);

  it("one that waits ends at once with its signal", async () => {
    const controller = new AbortController();
    const first = compute(endless, { people: [ann] });
    const second = compute("1", { people: [ann], signal: controller.signal });
    const third = resultOf("2", { people: [ann] });
    controller.abort(new Error("stopped"));
    await expect(Promise.race([first, second])).rejects.toThrow("stopped");
    await first;
    expect(await third).toBe("2");
  });
});

it("twenty at once have each their own answer", async () => {
  const codes = Array.from({ length: 20 }, (_, n) => `let x = ${n}; x * x`);
  expect(await Promise.all(codes.map((code) => resultOf(code)))).toEqual(codes.map((_, n) => String(n * n)));
});

it("the event loop goes on meanwhile", async () => {
  let ticks = 0;
  const ticking = setInterval(() => ticks++, 10);
  await compute("for (;;);");
  clearInterval(ticking);
  expect(ticks).toBeGreaterThan(0);
});
