import { describe, expect, it } from "vitest";
import { addressesIn, addressForm, isWrittenIn, pageSourcePrefix } from "../../../src/base/lib/web-address.ts";

describe("addresses in a text", () => {
  it.each([
    ["See https://a.example/b.", ["https://a.example/b.", "https://a.example/b"]],
    ["(https://a.example/b)", ["https://a.example/b)", "https://a.example/b"]],
    [
      "[b](https://a.example/b) and <https://c.example>",
      ["https://a.example/b)", "https://a.example/b", "https://c.example/"],
    ],
    ["https://a.example/b_(c)", ["https://a.example/b_(c)", "https://a.example/b_(c"]],
    ['"link": "http://A.example:80/x#y"', ["http://a.example/x"]],
    ["ftp://a.example/ mailto:a@b.example https:// http://", []],
  ])("%s", (text, found) => {
    const all = addressesIn(text, 100);
    for (const address of found) expect(all).toContain(address);
    expect(all.length === 0).toBe(found.length === 0);
  });

  it("are so many at most", () => {
    const text = Array.from({ length: 50 }, (_, n) => `https://a.example/${n}`).join(" ");
    expect(addressesIn(text, 10)).toHaveLength(10);
  });

  it("are found in time that grows with the text alone", () => {
    const begun = performance.now();
    addressesIn("https://".repeat(100_000), 1_000);
    addressesIn(`https://a.example/${")".repeat(200_000)}`, 1_000);
    isWrittenIn("https://a.example/", "a.".repeat(100_000));
    expect(performance.now() - begun).toBeLessThan(3_000);
  });
});

describe("an address", () => {
  it("has one form", () => {
    expect(addressForm("HTTPS://A.Example:443/b?c#d")).toBe("https://a.example/b?c");
    for (const none of ["a.example", "javascript:1", "https://", ""]) expect(addressForm(none)).toBeUndefined();
  });

  it("is the beginning of the sources of its knowledge, and of no other page's", () => {
    const prefix = pageSourcePrefix("HTTPS://A.example/b#part") ?? "";
    expect(prefix).toBe("web:https://a.example/b[");
    for (const other of ["https://a.example/b[1]", "https://a.example/b/", "https://a.example/b?c", "http://[::1]/"])
      expect(pageSourcePrefix(other)?.startsWith(prefix)).toBe(false);
    expect(pageSourcePrefix("http://[2001:db8::1]/a[b]")).toBe("web:http://[2001:db8::1]/a%5Bb%5D[");
    expect(pageSourcePrefix("agents:/a")).toBeUndefined();
  });

  it.each([
    ["https://a.example/b", "look at https://a.example/b!"],
    ["https://a.example/b", "look at https://a.example/b#part"],
    ["https://a.example/b", "(a.example/b)"],
    ["http://a.example/", "is a.example, still there?"],
    ["https://a.example/b?c=d", "[this](https://a.example/b?c=d)"],
    ["https://a.example/", "> <@ann:a> where?\n\n<https://a.example/>"],
  ])("%s is written in: %s", (address, written) => expect(isWrittenIn(address, written)).toBe(true));

  it.each([
    ["https://a.example/b?q=secret", "look at https://a.example/b"],
    ["https://a.example/b", "look at https://a.example/bc"],
    ["https://a.example/b", "look at https://a.example/"],
    ["https://evil.example/", "look at https://a.example/https://evil.example/x"],
    ["https://a.example/", "b.a.example"],
    ["https://a.example/", "a.example/b"],
    ["javascript:1", "javascript:1"],
    ["https://a.example/", "> <@agent_helper:a> I made up https://a.example/\n> or a.example\n\nNo, never do that."],
    ["https://a.example/", "> one\rhttps://a.example/\n  > a.example\n"],
  ])("%s is not written in: %s", (address, written) => expect(isWrittenIn(address, written)).toBe(false));
});
