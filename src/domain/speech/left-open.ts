/** Text that is not the speaker's own sentence: code, quotations, addresses. */
const notSaid = /```[\s\S]*?```|`[^`\n]*`|^[ \t]*>.*$|https?:\/\/\S+/gm;

/** A question mark at the end of a sentence. */
const question = /[?？؟]["'’”»)\]*_~]*(?=\s|$)/;

/** English: somebody says that they will do something, and not that they will not. */
const promise = /\bI(?: will|['’]ll)\s+(?!not\b|never\b)\p{L}/u;

/** Finds out if a message asks something, or says that its sender will do something (in English words). */
export function findLeftOpen(text: string): { readonly isQuestion: boolean; readonly isPromise: boolean } {
  const said = text.replace(notSaid, " ");
  return { isQuestion: question.test(said), isPromise: promise.test(said) };
}
