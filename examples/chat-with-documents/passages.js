const segmenter = new Intl.Segmenter(undefined, { granularity: "sentence" })
const characters = (text) => [...text].length

/** Chunks overlap: those of a page that touch become one passage again. The best comes first. */
const passagesOf = (results) => {
  const passages = []
  const inOrder = results
    .map((result, rank) => ({ ...result, rank }))
    .sort((a, b) => a.file_id.localeCompare(b.file_id) || a.start - b.start)
  for (const next of inOrder) {
    const last = passages.at(-1)
    const touches =
      last?.file_id === next.file_id && last.page === next.page && next.start <= last.end
    if (!touches) {
      passages.push(next)
      continue
    }
    last.text += [...next.text].slice(last.end - next.start).join("")
    last.end = Math.max(last.end, next.end)
    last.rank = Math.min(last.rank, next.rank)
  }
  return passages.sort((a, b) => a.rank - b.rank)
}

/** Joins wrapped lines; a line that ends early ends its paragraph. Lengths stay the same. */
const unwrapped = (text) => {
  const lines = text.split("\n")
  const longest = Math.max(...lines.map(({ length }) => length))
  return lines.reduce(
    (all, line, index) => all + (lines[index - 1].length > longest / 2 ? " " : "\n") + line,
  )
}

/** The server marks the pages of a PDF so. */
const pageMark = /^\s*\[Page \d+\]\s*/

/**
 * Divides the results of /v1/retrieval into sentences, each with its place: the page, and where it
 * starts and ends in the text of the file, in characters (Unicode code points).
 */
export const sentencesOf = (results) =>
  passagesOf(results).flatMap(({ file_id, page, start, text }) =>
    [...segmenter.segment(unwrapped(text))].flatMap(({ segment, index }) => {
      const before = (pageMark.exec(segment) ?? /^\s*/.exec(segment))[0].length
      const sentence = segment.slice(before).trimEnd()
      // a heading says nothing by itself
      if (!/\p{L}.*\p{P}$/su.test(sentence)) return []
      const from = start + characters(text.slice(0, index + before))
      return [{ file_id, page, start: from, end: from + characters(sentence), text: sentence }]
    }),
  )
