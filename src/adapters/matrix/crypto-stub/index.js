// Stands in for the native crypto binary, which downloads at install and which Clevernet does not use:
// the bridge library only touches it for its own encryption support, which stays off.
const unused = (name) =>
  new Proxy(
    {},
    {
      get() {
        throw new Error(`${name} is not part of Clevernet: the bridge library's own encryption is switched off`);
      },
    },
  );
exports.StoreType = unused("StoreType");
exports.OlmMachine = unused("OlmMachine");
