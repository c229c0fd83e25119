import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { drawImage, upload } from "../support/media.ts";
import type { ModelRequest } from "../support/scripted-model.ts";
import { all, answer, roomOf, roomSeen } from "../support/sight.ts";
import { Stage } from "../support/stage.ts";
import type { TestUser } from "../support/user.ts";

describe("files in a room", () => {
  let stage: Stage;
  let ann: TestUser;
  let room: string;
  beforeAll(async () => {
    stage = await Stage.set({ database: "postgres", permissions: { "@*:clevernet.test": "operate" } });
    await stage.bridge.start();
    ann = await stage.user("ann");
    room = await stage.directRoom(ann);
  });
  afterAll(() => stage.strike());

  /** Sends a file as clients do. @returns the event's id */
  const send = async (content: Buffer | ReadableStream, fields: Readonly<Record<string, unknown>>): Promise<string> => {
    const url = await upload(stage.homeserver, ann, content);
    return ann.send(room, "m.room.message", { msgtype: "m.file", url, info: { mimetype: "image/png" }, ...fields });
  };
  /** The message as the model was shown it in the last request that showed it. */
  const shown = (eventId: string) =>
    stage.model.requests
      .filter((request) => roomOf(request) === room)
      .flatMap((request) => all(roomSeen(request, room), "message"))
      .findLast((message) => message.attributes.eventId === eventId)?.attributes;
  const imagesOf = (request: ModelRequest | undefined): string[] => request?.body.messages.at(-1)?.images ?? [];
  const answered = (text: string) => ann.waitForMessage(room, ({ body }) => body === text);

  it("are kept, and shown with path, type and size; a model sees images", async () => {
    const image = await drawImage(300, 200);
    stage.model.on("cat.png", (request) => answer(request, "a cat"));
    const event = await send(image, { msgtype: "m.image", body: "cat.png", info: { mimetype: "text/html", w: 5 } });
    await answered("a cat");
    expect(shown(event)).toMatchObject({
      path: expect.stringMatching(/^rooms:\/!.*\/media\/cat-[a-z0-9]+\.png$/),
      contentType: "image/png",
      bytes: String(image.length),
      width: "300",
      height: "200",
    });
    const request = stage.model.requests.findLast((candidate) => roomOf(candidate) === room);
    expect(imagesOf(request)).toEqual([`data:image/png;base64,${image.toString("base64")}`]);
  });
});
