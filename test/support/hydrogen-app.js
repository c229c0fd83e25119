// The page: the whole Hydrogen, a Matrix client, as its published parts make it. Runs in a browser.
import { createNavigation, createRouter, FeatureSet, Platform, RootViewModel } from "hydrogen-view-sdk";

const platform = new Platform({
  container: document.body,
  config: { defaultHomeServer: new URLSearchParams(location.search).get("homeserver") },
  assetPaths: {
    serviceWorker: "/sw.js",
    worker: "/assets/main.js",
    downloadSandbox: "/assets/download-sandbox.html",
    olm: { wasm: "/olm/olm.wasm", legacyBundle: "/olm/olm_legacy.js", wasmBundle: "/olm/olm.js" },
  },
  options: { development: true },
});
await platform.init();
const features = await FeatureSet.load(platform.settingsStorage);
const navigation = createNavigation();
platform.setNavigation(navigation);
const urlRouter = createRouter({ navigation, history: platform.history });
urlRouter.attach();
const root = new RootViewModel({ platform, urlRouter, navigation, features });
await root.load();
platform.createAndMountRootView(root);
