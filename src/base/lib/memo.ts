/** The function, worked out once for each object that it is given: for objects that never change. */
export const memo = <Of extends object, Result extends object>(work: (of: Of) => Result): ((of: Of) => Result) => {
  const known = new WeakMap<Of, Result>();
  return (of) => {
    let result = known.get(of);
    if (result === undefined) {
      result = work(of);
      known.set(of, result);
    }
    return result;
  };
};

/** Remembers a result for an object and a value beside it. */
export const memoEach = <Of extends object, By, Result>(
  work: (of: Of, by: By) => Result,
): ((of: Of, by: By) => Result) => {
  const resultsOf = memo((_of: Of) => new Map<By, Result>());
  return (of, by) => {
    const results = resultsOf(of);
    const known = results.get(by);
    if (known !== undefined) return known;
    const result = work(of, by);
    results.set(by, result);
    return result;
  };
};

/**
 * Returns a text in one piece. V8 keeps a text that was put together as a tree of its parts, and walks through it at
 * each use, until somebody asks for a character of it. For texts that are used again and again.
 */
export const flat = (text: string): string => {
  text.charCodeAt(0);
  return text;
};
