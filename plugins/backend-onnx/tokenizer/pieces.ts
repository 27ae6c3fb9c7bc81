/**
 * SentencePiece (https://github.com/google/sentencepiece) writes a space as this character, and a
 * byte that is in no piece as `<0x0A>`.
 */
export const spaceMark = "\u2581"

/**
 * Whether a token is a letter: some models list `!` as special, to pad with it, and it is in texts
 * all the same.
 */
export const isLetter = (token: string): boolean => /^[!-~]$/.test(token)

/** Whether neither a merge's parts nor its result are hidden: the library refuses others. */
export const isShown = (hidden: ReadonlySet<string>, left: string, right: string): boolean =>
  !hidden.has(left) && !hidden.has(right) && !hidden.has(left + right)

const byteToken = /^<0x([0-9A-F]{2})>$/

/** Returns the bytes of a piece. */
export const pieceBytes = (piece: string): Buffer => {
  const byte = byteToken.exec(piece)
  return byte
    ? Buffer.from([Number.parseInt(byte[1]!, 16)])
    : Buffer.from(piece.replaceAll(spaceMark, " "))
}

/**
 * Converts scores to merges. SentencePiece repeatedly joins the two neighbours whose piece has the
 * highest score; BPE with byte fallback does the same with a list of pairs,
 * best first. Returns the pairs. Pieces that are not text must not be passed.
 */
export const mergesOf = (
  pieces: readonly { readonly text: string; readonly score: number }[],
): readonly (readonly [string, string])[] => {
  const known = new Set(pieces.map(({ text }) => text))
  const pairs = pieces.flatMap(({ text, score }) => {
    const letters = [...text]
    const found: { readonly pair: readonly [string, string]; readonly score: number }[] = []
    for (let at = 1; at < letters.length; at++) {
      const pair = [letters.slice(0, at).join(""), letters.slice(at).join("")] as const
      if (known.has(pair[0]) && known.has(pair[1])) found.push({ pair, score })
    }
    return found
  })
  return pairs.sort((a, b) => b.score - a.score).map(({ pair }) => pair)
}
