/** A length of time in words, in its largest unit: `45 seconds`, `10 minutes`, `1 hour`, `3 days`. */
export function lengthText(seconds: number): string {
  const units = [
    ["day", 86_400],
    ["hour", 3_600],
    ["minute", 60],
  ] as const;
  const [unit, length] = units.find(([, least]) => seconds >= least) ?? (["second", 1] as const);
  const count = Math.max(0, Math.floor(seconds / length));
  return `${count} ${unit}${count === 1 ? "" : "s"}`;
}
