const noName = "there is no such name, or no name server answers";
const nobody = "nobody answers there";
const noWay = "no way leads there";
const brokenOff = "it has ended the connection";
const unknownIssuer = "its certificate comes from nobody who is known";

const words: Readonly<Record<string, string>> = {
  ENOTFOUND: noName,
  EAI_AGAIN: noName,
  EINVAL: "its name is none that can be looked up",
  ECONNREFUSED: nobody,
  ETIMEDOUT: nobody,
  UND_ERR_CONNECT_TIMEOUT: nobody,
  EHOSTUNREACH: noWay,
  ENETUNREACH: noWay,
  ECONNRESET: brokenOff,
  EPIPE: brokenOff,
  UND_ERR_SOCKET: brokenOff,
  UND_ERR_HEADERS_TIMEOUT: "it took the question, and did not answer",
  UND_ERR_BODY_TIMEOUT: "it began its answer, and did not go on",
  UND_ERR_HEADERS_OVERFLOW: "its answer begins with more than is taken",
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: "its answer has another length than it says",
  CERT_HAS_EXPIRED: "its certificate has expired",
  CERT_NOT_YET_VALID: "its certificate is not valid yet",
  ERR_TLS_CERT_ALTNAME_INVALID: "its certificate is for another name",
  DEPTH_ZERO_SELF_SIGNED_CERT: unknownIssuer,
  SELF_SIGNED_CERT_IN_CHAIN: unknownIssuer,
  UNABLE_TO_GET_ISSUER_CERT: unknownIssuer,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: unknownIssuer,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: unknownIssuer,
};

/** Words for what the network said; they never name the address that a name stands for. */
export const networkWords = (error: Error): string => {
  const code = "code" in error ? String(error.code) : "";
  if (Object.hasOwn(words, code)) return words[code] ?? "";
  if (/^HPE_/.test(code)) return "it sent something that is no answer of a web server";
  if (/^(?:Z_|ERR__ERROR_|ERR_BROTLI_)/.test(code)) return "its answer is not packed as it says";
  if (/^(?:EPROTO$|ERR_SSL_)/.test(code)) return "it speaks no TLS, or none that is understood";
  if (/^[A-Z][A-Z0-9_]{1,60}$/.test(code)) return `the connection failed (${code})`;
  return error.message.slice(0, 200);
};
