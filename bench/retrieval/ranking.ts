const depth = 10

const discounted = (gains: readonly number[]): number =>
  gains.slice(0, depth).reduce((sum, gain, rank) => sum + gain / Math.log2(rank + 2), 0)

/**
 * nDCG@10 (Järvelin and Kekäläinen, 2002) with gains 2^grade - 1; 0 where nothing is relevant. A
 * document counts where it is found first.
 */
export const ndcg = (ranked: readonly number[], grades: ReadonlyMap<number, number>): number => {
  const gainOf = (grade = 0) => 2 ** grade - 1
  const gains = [...new Set(ranked)].map((document) => gainOf(grades.get(document)))
  const best = discounted([...grades.values()].map(gainOf).sort((a, b) => b - a))
  return best > 0 ? discounted(gains) / best : 0
}

const termsOf = (text: string): readonly string[] =>
  text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? []

const countsOf = (text: string): ReadonlyMap<string, number> => {
  const counts = new Map<string, number>()
  for (const term of termsOf(text)) counts.set(term, (counts.get(term) ?? 0) + 1)
  return counts
}

const [k1, b] = [1.2, 0.75]

/**
 * Okapi BM25 (Robertson et al., 1994) over whole words in lower case, without stems. The result
 * ranks the documents that share a word with the query, best first.
 */
export const bm25 = (documents: readonly string[]): ((query: string) => readonly number[]) => {
  const counts = documents.map(countsOf)
  const lengths = counts.map((count) => [...count.values()].reduce((sum, n) => sum + n, 0))
  const mean = lengths.reduce((sum, n) => sum + n, 0) / documents.length
  const postings = new Map<string, (readonly [document: number, times: number])[]>()
  for (const [i, count] of counts.entries())
    for (const [term, times] of count) {
      const found = postings.get(term)
      if (found) found.push([i, times])
      else postings.set(term, [[i, times]])
    }
  return (query) => {
    const scores = new Map<number, number>()
    for (const term of termsOf(query)) {
      const found = postings.get(term) ?? []
      const idf = Math.log(1 + (documents.length - found.length + 0.5) / (found.length + 0.5))
      for (const [i, times] of found) {
        const norm = k1 * (1 - b + (b * lengths[i]!) / mean)
        scores.set(i, (scores.get(i) ?? 0) + (idf * times * (k1 + 1)) / (times + norm))
      }
    }
    return [...scores].sort(([, x], [, y]) => y - x).map(([i]) => i)
  }
}
