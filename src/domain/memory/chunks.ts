/** Length of a chunk, and of the part that it shares with the one before it, in characters. */
const chunkLength = 512;
const overlap = 50;

/** Cuts a text into the parts of which vectors are made: there is at least one. */
export function chunksOf(text: string): string[] {
  const chunks: string[] = [];
  for (let from = 0; from === 0 || from + overlap < text.length; from += chunkLength - overlap)
    chunks.push(text.slice(from, from + chunkLength).toWellFormed());
  return chunks;
}
