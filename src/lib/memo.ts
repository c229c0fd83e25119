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
