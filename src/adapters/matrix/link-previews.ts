/**
 * Part of a message's content that asks for no previews of the links in it (MSC4095, with its name until it is accepted):
 * to fetch one is to send its address to a host, and whoever has steered the agent may have put a secret into it. It
 * stands in every message, since clients make links of words in which we see none.
 */
export const withoutPreviews = { "m.url_previews": [], "com.beeper.linkpreviews": [] } as const;
