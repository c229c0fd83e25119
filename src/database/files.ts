import type { Database } from "./connection.ts";

export interface FileRow {
  readonly share: string;
  readonly path: string;
  readonly contentType: string;
  readonly text: string | null;
  readonly owner: string;
  readonly version: number;
}

const columns = `share, path, content_type as "contentType", text_content as text, owner, version`;

export class Files {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Reads the named files; those that are not there are left out. */
  read(files: readonly { readonly share: string; readonly path: string }[]): Promise<FileRow[]> {
    return this.#database.run(
      (sql) => sql<FileRow[]>`
        select ${sql.unsafe(columns)} from files
        where (share, path) in (select * from unnest(${files.map((file) => file.share)}::text[], ${files.map((file) => file.path)}::text[]))`,
    );
  }

  /** Writes a file that is not there yet; one that is stays as it is. */
  async seed(file: Omit<FileRow, "version">): Promise<void> {
    await this.#database.run(
      (sql) => sql`
        insert into files (share, path, content_type, text_content, owner)
        values (${file.share}, ${file.path}, ${file.contentType}, ${file.text}, ${file.owner})
        on conflict (share, path) do nothing`,
    );
  }

  /** Replaces a file's text; its version rises. */
  async write(file: Omit<FileRow, "version">): Promise<void> {
    await this.#database.run(
      (sql) => sql`
        insert into files (share, path, content_type, text_content, owner)
        values (${file.share}, ${file.path}, ${file.contentType}, ${file.text}, ${file.owner})
        on conflict (share, path) do update set content_type = excluded.content_type, text_content = excluded.text_content,
          version = files.version + 1, updated_at = now()
        where files.text_content is distinct from excluded.text_content`,
    );
  }
}
