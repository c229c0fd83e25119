import { readFile, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { isMap, stringify } from "yaml";
import { z } from "zod";
import { messageOf, UserError } from "../../base/lib/errors.ts";
import { digest, secret } from "../../base/lib/ids.ts";
import { problemsOf } from "../../base/lib/problems.ts";
import { parseYaml } from "../../base/lib/yaml.ts";

/** Content of registration.yaml, in its own words: the homeserver reads the same file. */
export interface Registration {
  readonly id: string;
  /** Address at which the homeserver reaches us. */
  readonly url: string;
  readonly as_token: string;
  readonly hs_token: string;
  readonly sender_localpart: string;
  readonly rate_limited: boolean;
  readonly receive_ephemeral: boolean;
  readonly "io.element.msc4190": boolean;
  readonly namespaces: {
    readonly users: readonly { readonly exclusive: boolean; readonly regex: string }[];
    readonly aliases: readonly { readonly exclusive: boolean; readonly regex: string }[];
    readonly rooms: readonly unknown[];
  };
}

/** Values of the configuration that the registration has to repeat. */
interface RegistrationTerms {
  readonly serverName: string;
  readonly url: string;
}

/** Localpart of the bridge bot. */
const botLocalpart = "clevernet";

const literally = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);

/** All agents of `serverName`, and no user of another server. */
const agentsOf = (serverName: string): string => `@agent_.*:${literally(serverName)}`;

/** Names of the bridge's own rooms: nobody else can take one first. */
const aliasesOf = (serverName: string): string => `#clevernet_.*:${literally(serverName)}`;

/** A new registration with fresh tokens. */
export const createRegistration = ({ serverName, url }: RegistrationTerms): Registration => ({
  id: "clevernet",
  url,
  as_token: secret(),
  hs_token: secret(),
  sender_localpart: botLocalpart,
  rate_limited: false,
  receive_ephemeral: false,
  "io.element.msc4190": true,
  namespaces: {
    users: [{ exclusive: true, regex: agentsOf(serverName) }],
    aliases: [{ exclusive: true, regex: aliasesOf(serverName) }],
    rooms: [],
  },
});

/**
 * @throws UserError that lists everything by which the homeserver and this bridge would misunderstand each other
 */
export const readRegistration = async (file: string, terms: RegistrationTerms): Promise<Registration> => {
  const written: unknown = parseYaml(await readText(file), file).toJS();
  const result = schemaFor(terms, dirname(file)).safeParse(written);
  if (result.success) return result.data;
  const lines = problemsOf(result.error, written, (path) => path.endsWith("_token")).map(({ line }) => `  ${line}`);
  const remedy = "Correct it, give the homeserver the same file, and restart the homeserver.";
  throw new UserError([`${file} has mistakes:`, ...lines, remedy].join("\n"));
};

const schemaFor = ({ serverName, url }: RegistrationTerms, dir: string) => {
  const freshTokens = `a token of its own, of 16 characters or more and no placeholder; make new ones with: npm run clevernet -- init --rotate-tokens --dir ${dir}`;
  const token = z.string(freshTokens).refine((text) => /^(?!placeholder)[\x21-\x7e]{16,}$/i.test(text), freshTokens);
  const regex = `'${agentsOf(serverName)}', because config.yaml says that the homeserver is ${serverName}`;
  const users = `one entry, { exclusive: true, regex: '${agentsOf(serverName)}' }`;
  const aliases = `one entry, { exclusive: true, regex: '${aliasesOf(serverName)}' }`;
  const sameUrl = `${url}, which is bridge.url in config.yaml`;
  return z
    .object(
      {
        id: z.string("a name").min(1, "a name"),
        url: z.string(sameUrl).refine((text) => text.replace(/\/+$/, "") === url, sameUrl),
        as_token: token,
        hs_token: token,
        sender_localpart: z.literal(botLocalpart, botLocalpart),
        rate_limited: z.literal(false, "false: agents answer side by side, and the bridge has limits of its own"),
        receive_ephemeral: z.literal(false, "false: typing and receipts are not used").default(false),
        "io.element.msc4190": z.literal(true, "true: agents have devices, so that nothing is sent twice"),
        namespaces: z.object(
          {
            users: z
              .array(
                z.object({ exclusive: z.literal(true, "true"), regex: z.literal(agentsOf(serverName), regex) }, users),
                users,
              )
              .length(1, users),
            aliases: z
              .array(
                z.object(
                  { exclusive: z.literal(true, "true"), regex: z.literal(aliasesOf(serverName), aliases) },
                  aliases,
                ),
                aliases,
              )
              .length(1, aliases),
            rooms: z.array(z.unknown(), "a list").default([]),
          },
          "users, aliases and rooms",
        ),
      },
      "a registration",
    )
    .refine((read) => read.as_token !== read.hs_token, {
      path: ["hs_token"],
      error: freshTokens,
    });
};

const header = `# Tells the homeserver of Clevernet, and Clevernet who it is. Both read this file; keep it secret.
# After a change restart the homeserver, too.
`;

/**
 * Writes a new file, readable by its owner alone: the homeserver's user has to be let in.
 * @throws UserError when there is one already
 */
export const writeRegistration = async (file: string, registration: Registration): Promise<void> => {
  try {
    await writeFile(file, header + stringify(registration), { flag: "wx", mode: 0o600 });
  } catch (error) {
    throw new UserError(`${file} cannot be written (${messageOf(error)}); a file that exists is never overwritten.`);
  }
};

/** Gives the file new tokens and leaves everything else in it, its comments, owner and mode as they are. */
export const rotateTokens = async (file: string): Promise<void> => {
  const document = parseYaml(await readText(file), file);
  if (!isMap(document.contents)) throw new UserError(`${file}: found no registration in it. ${remedy}`);
  document.set("as_token", secret());
  document.set("hs_token", secret());
  await writeFile(file, document.toString()).catch((error: unknown) => {
    throw new UserError(`${file} cannot be written (${messageOf(error)}). Do this as a user that may.`);
  });
};

const remedy =
  "Copy it from where the homeserver reads it, or make all files anew in another folder: npm run clevernet -- init --dir DIR";

const readText = (file: string): Promise<string> =>
  readFile(file, "utf8").catch((error: unknown) => {
    throw new UserError(`${file} cannot be read (${messageOf(error)}). ${remedy}`);
  });

/** The device under which the bot sends: the same as long as the tokens are. */
export const botDeviceOf = ({ as_token }: Registration): string => {
  const letters = digest("bot", as_token).replace(/[^A-Za-z0-9]/g, "");
  return `CLEVERNET${letters.slice(0, 8).toUpperCase()}`;
};
