const characters = (text) => Array.from(text)

/** Places are those of the text itself; formats without places, and texts that were changed since, have none that fit. */
const isPlaced = ({ start, end, text }) =>
  start !== undefined && end !== undefined && end - start === characters(text).length

const pageOf = ({ page }) => (page === undefined ? {} : { page })

/** Trimmed white space, as far as its length says what it was. */
const gapOf = (length) => (length <= 0 ? "" : length === 1 ? " " : "\n\n")

/** Chunks overlap: each gives what the ones before it and the hit, which is kept whole, have not. */
const joined = (chunks, hit) => {
  const hitAt = chunks.indexOf(hit)
  let end = chunks[0].start
  return chunks.flatMap((chunk, at) => {
    const isHit = chunk === hit
    const last = at < hitAt ? Math.min(chunk.end, hit.start) : chunk.end
    const from = Math.max(isHit ? chunk.start : end, chunk.start)
    const gap = { text: gapOf(from - end), isHit: false, ...pageOf(chunks[at - 1] ?? chunk) }
    const text = characters(chunk.text).slice(from - chunk.start, Math.max(0, last - chunk.start))
    end = Math.max(end, last)
    return [gap, { text: text.join(""), isHit, ...pageOf(chunk) }]
  })
}

/** A hit of a query among the text around it: `{ text, isHit, page? }`, in the order of the document. */
export const surroundings = (hit) => {
  const chunks = [...(hit.neighbours ?? []), hit].sort((a, b) => a.chunk_index - b.chunk_index)
  if (chunks.every(isPlaced)) return joined(chunks, hit).filter(({ text }) => text !== "")
  return chunks.map((chunk, at) => ({
    text: `${at > 0 ? "\n…\n" : ""}${chunk.text}`,
    isHit: chunk === hit,
    ...pageOf(chunk),
  }))
}
