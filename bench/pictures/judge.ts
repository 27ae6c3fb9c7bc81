import type { ColourName } from "./colour-names.ts"
import type { Piece, Seen } from "./pieces.ts"

export type Relation = "left" | "right" | "above" | "below"

/** What a composed prompt asks for, beside the things themselves. */
export type Wanted =
  | { readonly kind: "colour"; readonly colour: ColourName }
  | { readonly kind: "count"; readonly count: number }
  | { readonly kind: "pair"; readonly relation: Relation; readonly colours: readonly ColourName[] }
  | { readonly kind: "corner"; readonly where: string }

export interface Verdict {
  readonly right: boolean
  /** What the picture shows instead, in a word or two. */
  readonly found: string
}

const areaOf = (pieces: readonly Piece[]) => pieces.reduce((sum, { area }) => sum + area, 0)

const shareOf = (pieces: readonly Piece[], name: ColourName): number =>
  pieces.reduce((sum, { names }) => sum + (names.get(name) ?? 0), 0) / areaOf(pieces)

/** The names of the pieces' pixels, the most frequent first. */
const namesIn = (pieces: readonly Piece[]): readonly (readonly [ColourName, number])[] => {
  const names = new Set(pieces.flatMap((piece) => [...piece.names.keys()]))
  return [...names]
    .map((name) => [name, shareOf(pieces, name)] as const)
    .toSorted((a, b) => b[1] - a[1])
}

const centreOf = (pieces: readonly Piece[]) => ({
  x: pieces.reduce((sum, { x, area }) => sum + x * area, 0) / areaOf(pieces),
  y: pieces.reduce((sum, { y, area }) => sum + y * area, 0) / areaOf(pieces),
})

/** The main colour is the asked one: the most frequent, or two fifths of what is drawn. */
const judgedColour = ({ pieces }: Seen, colour: ColourName): Verdict => {
  const [most] = namesIn(pieces)
  return { right: most?.[0] === colour || shareOf(pieces, colour) > 0.4, found: most?.[0] ?? "" }
}

/** Things are the pieces that have a third of the largest one's area; less is a detail. */
const judgedCount = ({ pieces }: Seen, count: number): Verdict => {
  const things = pieces.filter(({ area }) => area > pieces[0]!.area / 3)
  return { right: things.length === count, found: String(things.length) }
}

/** Each piece belongs to that one of two things whose colour it has more of. */
const judgedPair = (
  { pieces }: Seen,
  relation: Relation,
  [first, second]: readonly ColourName[],
): Verdict => {
  const more = (piece: Piece) => shareOf([piece], first!) - shareOf([piece], second!)
  const one = pieces.filter((piece) => more(piece) > 0.15)
  const other = pieces.filter((piece) => more(piece) < -0.15)
  const least = 0.1 * areaOf(pieces)
  if (areaOf(one) < least || areaOf(other) < least)
    return { right: false, found: pieces.length < 2 ? "one piece" : "not both colours" }
  const [a, b] = [centreOf(one), centreOf(other)]
  const [dx, dy] = [b.x - a.x, b.y - a.y]
  const across = Math.abs(dx) > Math.abs(dy)
  const found = across ? (dx > 0 ? "left" : "right") : dy > 0 ? "above" : "below"
  return { right: found === relation && Math.hypot(dx, dy) > 0.12, found }
}

const places: Readonly<Record<string, readonly [number, number]>> = {
  left: [0.25, 0.5],
  right: [0.75, 0.5],
  top: [0.5, 0.25],
  bottom: [0.5, 0.75],
  "top left": [0.25, 0.25],
  "top right": [0.75, 0.25],
  "bottom left": [0.25, 0.75],
  "bottom right": [0.75, 0.75],
  middle: [0.5, 0.5],
}

/** The place whose middle is nearest to what is drawn. */
const judgedPlace = ({ pieces }: Seen, where: string): Verdict => {
  const { x, y } = centreOf(pieces)
  const distance = ([column, row]: readonly [number, number]) => Math.hypot(x - column, y - row)
  const [found] = Object.entries(places).toSorted((a, b) => distance(a[1]) - distance(b[1]))
  return { right: found![0] === where, found: found![0] }
}

/** Does the picture show what was asked? It knows nothing of the model or of its training. */
export const judged = (seen: Seen, wanted: Wanted): Verdict => {
  if (seen.share < 0.01 || seen.share > 0.9) return { right: false, found: "nothing" }
  if (wanted.kind === "colour") return judgedColour(seen, wanted.colour)
  if (wanted.kind === "count") return judgedCount(seen, wanted.count)
  if (wanted.kind === "pair") return judgedPair(seen, wanted.relation, wanted.colours)
  return judgedPlace(seen, wanted.where)
}
