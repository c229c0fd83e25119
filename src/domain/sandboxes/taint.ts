/** Name of all that comes out of sandboxes among untrusted texts: anything may have got into one. */
export const sandboxTaint = "sandbox:/";
