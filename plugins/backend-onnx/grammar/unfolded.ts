/** An escape, a class or a group's opening, which are one atom each, or a repetition. */
const parts =
  /\\(?:[xup]\{[^}]*\}|.)|\[(?:\\.|[^\]])*\]|\((?:\?(?:[a-z]*:|<[^>]*>))?|\{(\d+)(?:,(\d*))?\}|[\s\S]/giu

/**
 * Returns the number of atoms of a pattern when its counted repetitions are written out: about the
 * number of states that its lexer may come to know.
 */
export const unfoldedSize = (pattern: string): number => {
  // sizes of the groups that are open; the last is that of the innermost one
  const open = [0]
  let last = 0
  for (const [part, least, most] of pattern.matchAll(parts)) {
    if (part.startsWith("(")) {
      open.push(0)
      last = 0
    } else if (part === ")" && open.length > 1) {
      last = open.pop()!
      open[open.length - 1]! += last
    } else if (least !== undefined) {
      open[open.length - 1]! += last * (Math.max(1, Number(most || least)) - 1)
    } else if (!"*+?|^$".includes(part)) {
      last = 1
      open[open.length - 1]! += 1
    }
  }
  return open.reduce((sum, size) => sum + size, 0)
}
