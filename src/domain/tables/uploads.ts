import type { Database, Json } from "../../adapters/database/connection.ts";

/** A file that a row of the outbox carries. */
export interface Upload {
  readonly part: "file" | "thumbnail";
  readonly name: string;
  readonly contentType: string;
  readonly content: Uint8Array;
}

/** Key, counter and hash of an encrypted file, as the message has them that carries it. */
export type FileCipher = Readonly<Record<string, unknown>>;

export interface UploadRow extends Omit<Upload, "content"> {
  /** null once the homeserver has it. */
  readonly content: Uint8Array | null;
  /** `mxc://` address, once the homeserver has it. */
  readonly url: string | null;
  /** null where it is not encrypted. */
  readonly cipher: FileCipher | null;
}

/** Files that are sent, frozen when they were given away. */
export class Uploads {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Keeps files for the outbox row with this key; what is kept for it already stays. */
  async keep(key: string, uploads: readonly Upload[]): Promise<void> {
    for (const { part, name, contentType, content } of uploads) {
      await this.#database.run(
        (sql) => sql`
          insert into uploads (key, part, name, content_type, content)
          values (${key}, ${part}, ${name}, ${contentType}, ${content}::bytea) on conflict do nothing`,
      );
    }
  }

  of(key: string): Promise<UploadRow[]> {
    return this.#database.run(
      (sql) => sql<UploadRow[]>`
        select part, name, content_type as "contentType", content, url, cipher from uploads where key = ${key} order by part`,
    );
  }

  /** The homeserver has it now, and gives it out under this address. */
  async markUploaded(key: string, part: Upload["part"], url: string, cipher: FileCipher | null): Promise<void> {
    await this.#database.run(
      (sql) => sql`
        update uploads set url = ${url}, cipher = ${cipher && sql.json(cipher as Json)}, content = null
        where key = ${key} and part = ${part} and url is null`,
    );
  }

  /** Forgets what nobody sends any more: operations that ended before they were written leave such. */
  async forgetOld(): Promise<void> {
    await this.#database.run(
      (sql) => sql`
        delete from uploads u where created_at < now() - interval '1 day'
          and not exists (select 1 from outbox o where o.key = u.key and o.state = 'pending')`,
    );
  }
}
