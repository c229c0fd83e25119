/**
 * Divides `total` among those who want `wants`, in proportion to `weights`: nobody gets more than is wanted, and what
 * one does not need goes to the others.
 */
export const share = (
  wants: readonly number[],
  total: number,
  weights: readonly number[] = wants.map(() => 1),
): number[] => {
  const given = wants.map(() => 0);
  const entries = wants.map((want, index) => ({ want, index, weight: weights[index] ?? 1 }));
  let left = Math.max(0, total);
  let weightLeft = entries.reduce((sum, { weight }) => sum + weight, 0);
  for (const { want, index, weight } of entries.sort((a, b) => a.want / a.weight - b.want / b.weight)) {
    const got = Math.min(want, Math.floor((left * weight) / weightLeft));
    given[index] = got;
    left -= got;
    weightLeft -= weight;
  }
  return given;
};
