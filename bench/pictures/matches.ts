type Vectors = readonly (readonly number[])[]

export const cosine = (a: readonly number[], b: readonly number[]): number =>
  a.reduce((sum, value, at) => sum + value * b[at]!, 0)

/** Which of `candidates` are nearest, the nearest first. */
export const nearestOf = (vector: readonly number[], candidates: Vectors, most = 5): number[] =>
  candidates
    .map((candidate, at) => [cosine(vector, candidate), at] as const)
    .toSorted((a, b) => b[0] - a[0])
    .slice(0, most)
    .map(([, at]) => at)

/** The parts of `vectors` whose own candidate is the nearest, and among the five nearest. */
export const recalls = (vectors: Vectors, candidates: Vectors, own: readonly number[]) => {
  const near = vectors.map((vector) => nearestOf(vector, candidates))
  const part = (most: number) =>
    near.filter((found, at) => found.slice(0, most).includes(own[at]!)).length / vectors.length
  return { first: part(1), five: part(5) }
}
