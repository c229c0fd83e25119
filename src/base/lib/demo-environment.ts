/** Settings of the demo that the environment gives. */
export interface DemoEnvironment {
  /** Folder for programs that are fetched once, and shared by all clones. */
  readonly cacheDir: string;
  readonly openRouterKey: string | undefined;
  readonly modelBaseUrl: string | undefined;
  readonly modelName: string | undefined;
  /** Key for `modelBaseUrl`. */
  readonly modelKey: string | undefined;
}
