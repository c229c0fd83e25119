/** The part of autocannon 9 that is used: it brings no types. */
declare module "autocannon" {
  interface Request {
    readonly method: string;
    readonly path?: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly body?: string;
  }
  interface Options {
    readonly url: string;
    readonly connections: number;
    /** Seconds. */
    readonly duration: number;
    /** `setupRequest` makes each request anew. */
    readonly requests: readonly (Request & { setupRequest(request: Request): Request })[];
  }
  interface Result {
    /** Requests that were answered. */
    readonly requests: { readonly total: number };
    /** Of the run, in seconds. */
    readonly duration: number;
    readonly non2xx: number;
    readonly errors: number;
  }
  export default function autocannon(options: Options): Promise<Result>;
}
