/** The number of characters (code points) of a well-formed text. */
export const countCharacters = (text: string): number => {
  let pairs = 0
  for (const _ of text.matchAll(/[\ud800-\udbff]/g)) pairs++
  return text.length - pairs
}

/** The last `characters` of a text, or all of it. */
export const lastCharacters = (text: string, characters: number): string => {
  const units = text.slice(-2 * characters)
  const kept = [...units]
  return kept.slice(Math.max(0, kept.length - characters)).join("")
}
