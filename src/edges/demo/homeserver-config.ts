import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { stringify } from "yaml";
import { digest, secret } from "../../base/lib/ids.ts";

/** Settings of a local homeserver. */
export interface HomeserverSettings {
  /** Absolute path of the folder with all of its state: made when absent, never emptied. */
  readonly dir: string;
  readonly port: number;
  /** Cannot change for a folder that holds data. */
  readonly serverName: string;
  /** Absolute paths of application service registrations. */
  readonly registrations: readonly string[];
  /** Top-level entries of homeserver.yaml that replace ours. */
  readonly extraConfig?: Readonly<Record<string, unknown>>;
  /** Level of Synapse's log. Default: WARNING. */
  readonly logLevel?: "DEBUG" | "INFO" | "WARNING";
}

const unlimited = { per_second: 10_000, burst_count: 100_000 };

/** Nobody but this machine reaches the homeserver, so nothing is throttled. */
const rateLimits = {
  rc_message: unlimited,
  rc_registration: unlimited,
  rc_registration_token_validity: unlimited,
  rc_login: { address: unlimited, account: unlimited, failed_attempts: unlimited },
  rc_admin_redaction: unlimited,
  rc_joins: { local: unlimited, remote: unlimited },
  rc_joins_per_room: unlimited,
  rc_room_creation: unlimited,
  rc_invites: { per_room: unlimited, per_user: unlimited, per_issuer: unlimited },
  rc_media_create: unlimited,
  rc_key_requests: unlimited,
  rc_delayed_event_mgmt: unlimited,
  rc_user_directory: unlimited,
  rc_reports: unlimited,
  rc_presence: { per_user: unlimited },
  rc_3pid_validation: unlimited,
};

/**
 * Writes homeserver.yaml and log.yaml anew, and signing.key where there is none: a homeserver for this machine alone,
 * without federation, on which anybody may register. The other secrets are made from the signing key.
 * @returns path of homeserver.yaml
 */
export const writeHomeserverConfig = async (settings: HomeserverSettings): Promise<string> => {
  const { dir, port, serverName, registrations, extraConfig, logLevel = "WARNING" } = settings;
  await mkdir(dir, { recursive: true });
  const key = await signingKey(join(dir, "signing.key"));
  const config = {
    server_name: serverName,
    public_baseurl: `http://127.0.0.1:${port}/`,
    listeners: [
      {
        port,
        bind_addresses: ["127.0.0.1"],
        type: "http",
        tls: false,
        resources: [{ names: ["client", "media"], compress: false }],
      },
    ],
    database: { name: "sqlite3", args: { database: join(dir, "homeserver.db") } },
    media_store_path: join(dir, "media"),
    max_upload_size: "100M",
    log_config: join(dir, "log.yaml"),
    pid_file: join(dir, "synapse.pid"),
    signing_key_path: join(dir, "signing.key"),
    macaroon_secret_key: digest("macaroon", key),
    form_secret: digest("form", key),
    registration_shared_secret: digest("registration", key),
    enable_registration: true,
    enable_registration_without_verification: true,
    bcrypt_rounds: 4,
    report_stats: false,
    url_preview_enabled: false,
    federation_domain_whitelist: [],
    trusted_key_servers: [],
    suppress_key_server_warning: true,
    app_service_config_files: registrations,
    ...rateLimits,
    ...extraConfig,
  };
  const log = {
    version: 1,
    formatters: { line: { format: "%(asctime)s %(levelname)s %(name)s %(message)s" } },
    handlers: { console: { class: "logging.StreamHandler", formatter: "line" } },
    root: { level: logLevel, handlers: ["console"] },
    disable_existing_loggers: false,
  };
  const file = join(dir, "homeserver.yaml");
  await writeFile(file, stringify(config, { aliasDuplicateObjects: false }), { mode: 0o600 });
  await writeFile(join(dir, "log.yaml"), stringify(log));
  return file;
};

const signingKey = async (file: string): Promise<string> => {
  const seed = Buffer.from(secret(32), "hex").toString("base64").replace(/=+$/, "");
  try {
    await writeFile(file, `ed25519 a_local ${seed}\n`, { flag: "wx", mode: 0o600 });
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
  }
  return readFile(file, "utf8");
};
