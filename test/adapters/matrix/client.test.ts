import { describe, expect, it } from "vitest";
import { HomeserverError } from "../../../src/adapters/matrix/client.ts";

describe("a refused request", () => {
  const final = (answer: object) => new HomeserverError("GET /", answer).isFinal;

  it.each([400, 403, 404, 413])("that the homeserver answers with %i is refused for good", (statusCode) => {
    expect(final({ statusCode, errcode: "M_FORBIDDEN" })).toBe(true);
  });

  it.each([0, 302, 401, 408, 429, 500, 502])("that it answers with %i may get through later", (statusCode) => {
    expect(final({ statusCode, errcode: "M_UNKNOWN" })).toBe(false);
  });

  it("that a homeserver does not recognise may get through later: another of its processes knows it", () => {
    expect(final({ statusCode: 404, errcode: "M_UNRECOGNIZED" })).toBe(false);
  });

  it("that a gateway answers with 404 may get through later", () => {
    expect(final({ statusCode: 404, body: "404 page not found" })).toBe(false);
  });

  it("that is too large for a gateway is refused for good", () => {
    expect(final({ statusCode: 413, body: "<html>" })).toBe(true);
  });
});

describe("how long to wait", () => {
  const waitOf = (answer: object) => new HomeserverError("GET /", { statusCode: 429, ...answer }).retryAfterMs;

  it("is what the homeserver says, or what a gateway does", () => {
    expect(waitOf({ retryAfterMs: 1_500 })).toBe(1_500);
    expect(waitOf({ headers: { "retry-after": "4" } })).toBe(4_000);
  });

  it.each<object>([
    {},
    { retryAfterMs: 0 },
    { retryAfterMs: -1_000 },
    { retryAfterMs: Number.NaN },
    { retryAfterMs: "soon" },
    { headers: { "retry-after": "0" } },
    { headers: { "retry-after": "Wed, 21 Oct 2015 07:28:00 GMT" } },
  ])("is not said by %j", (answer) => {
    expect(waitOf(answer)).toBeUndefined();
  });

  it("is a day at the most", () => {
    expect(waitOf({ headers: { "retry-after": "9999999999" } })).toBe(86_400_000);
    expect(waitOf({ retryAfterMs: Number.POSITIVE_INFINITY })).toBe(86_400_000);
  });
});
