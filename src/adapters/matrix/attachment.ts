import { isObject } from "../../base/lib/json.ts";
import type { FileKeys } from "./encrypted-file.ts";

/** The file that a message carries, as its sender describes it: nothing of it is to be believed. */
export interface Attachment {
  /** Address on the homeserver: `mxc://SERVER/ID`. undefined: no such address. */
  readonly url: string | undefined;
  /** By which it is decrypted; undefined where it is not encrypted. */
  readonly keys: FileKeys | undefined;
  readonly name: string;
  /** The message's body says something of its own beside the name. */
  readonly isCaptioned: boolean;
}

const carriers: ReadonlySet<unknown> = new Set(["m.image", "m.file", "m.audio", "m.video"]);

const mxc = /^mxc:\/\/([A-Za-z0-9.:[\]-]{1,255})\/([\w-]{1,255})$/;

/** Cuts an `mxc://` address; undefined if it is none. */
export const splitMxc = (url: string): { readonly server: string; readonly mediaId: string } | undefined => {
  const [, server, mediaId] = mxc.exec(url) ?? [];
  return server === undefined || mediaId === undefined ? undefined : { server, mediaId };
};

/** The file of a message or sticker. A voice message is one with audio; a thumbnail is not looked at. */
export const readAttachment = (event: { readonly type: string; readonly content: unknown }): Attachment | undefined => {
  const { type, content } = event;
  if (!isObject(content) || typeof content.body !== "string") return undefined;
  if (type !== "m.sticker" && !(type === "m.room.message" && carriers.has(content.msgtype))) return undefined;
  const { body, file, filename } = content;
  const keys = isObject(file) ? file : undefined;
  const { url } = keys ?? content;
  const isNamed = typeof filename === "string" && filename !== "";
  return {
    url: typeof url === "string" && splitMxc(url) ? url : undefined,
    keys,
    name: isNamed ? filename : body,
    isCaptioned: isNamed && filename !== body,
  };
};
