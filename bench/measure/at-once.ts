/** Calls `work` on all items, so many at once; the results are in their order. */
export const atOnce = async <A, B>(
  items: readonly A[],
  many: number,
  work: (item: A, index: number) => Promise<B>,
): Promise<readonly B[]> => {
  const results: B[] = []
  let next = 0
  const go = async () => {
    while (next < items.length) {
      const index = next++
      results[index] = await work(items[index]!, index)
    }
  }
  await Promise.all(Array.from({ length: many }, go))
  return results
}
