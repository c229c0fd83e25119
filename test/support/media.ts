import sharp from "sharp";
import type { TestHomeserver } from "./homeserver.ts";
import type { TestUser } from "./user.ts";

const noise = { type: "gaussian", mean: 128, sigma: 40 } as const;

/** A PNG of noise, so that it is no smaller than it looks. */
export const drawImage = (width: number, height: number): Promise<Buffer> =>
  sharp({ create: { width, height, channels: 3, background: "black", noise } })
    .png()
    .toBuffer();

/** @returns the mxc:// address under which the homeserver keeps it */
export async function upload(
  homeserver: TestHomeserver,
  user: TestUser,
  content: Buffer | ReadableStream,
  type = "image/png",
) {
  const response = await fetch(`${homeserver.url}/_matrix/media/v3/upload?filename=x`, {
    method: "POST",
    headers: { authorization: `Bearer ${user.credentials.accessToken}`, "content-type": type },
    body: content,
    ...(content instanceof ReadableStream && { duplex: "half" }),
  });
  if (!response.ok) throw new Error(`the upload was answered ${response.status}: ${await response.text()}`);
  return String(((await response.json()) as { content_uri: string }).content_uri);
}

/** The file behind an mxc:// address, as a client reads it. */
export async function downloadAs(homeserver: TestHomeserver, user: TestUser, mxc: unknown): Promise<Buffer> {
  const path = String(mxc).slice("mxc://".length);
  const response = await fetch(`${homeserver.url}/_matrix/client/v1/media/download/${path}`, {
    headers: { authorization: `Bearer ${user.credentials.accessToken}` },
  });
  if (!response.ok) throw new Error(`the download of ${path} was answered ${response.status}`);
  return Buffer.from(await response.arrayBuffer());
}
