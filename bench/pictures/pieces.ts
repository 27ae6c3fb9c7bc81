import { type ColourName, colourName, type Lab, labOf } from "./colour-names.ts"

/** 8-bit RGB, rows from the top. */
export interface Picture {
  readonly data: Uint8Array
  readonly width: number
  readonly height: number
}

/** A connected part of what isn't background; places are parts of the picture's width and height. */
export interface Piece {
  readonly area: number
  readonly x: number
  readonly y: number
  readonly names: ReadonlyMap<ColourName, number>
}

export interface Seen {
  readonly pieces: readonly Piece[]
  /** The part of the picture that isn't background. */
  readonly share: number
}

// distances in CIELAB: what is nearer to the edge's colour than this is background
const backgroundDistance = 17
// a piece with less of the picture is noise
const leastShare = 0.0015

const medianOf = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[values.length >> 1]!

/** The colour of the outermost pixels: the median of each channel. */
const edgeColour = ({ width, height }: Picture, labs: readonly Lab[]): Lab => {
  const edge = labs.filter((_, at) => {
    const [x, y] = [at % width, Math.floor(at / width)]
    return x === 0 || y === 0 || x === width - 1 || y === height - 1
  })
  return [0, 1, 2].map((channel) => medianOf(edge.map((lab) => lab[channel]!))) as never
}

/** Pixels of each connected group (8 neighbours) of a mask. */
const groupsOf = (mask: Uint8Array, width: number, height: number): number[][] => {
  const left = Uint8Array.from(mask)
  const groups: number[][] = []
  for (let start = 0; start < left.length; start++) {
    if (left[start] === 0) continue
    const group = [start]
    left[start] = 0
    for (let next = 0; next < group.length; next++) {
      const [x, y] = [group[next]! % width, Math.floor(group[next]! / width)]
      for (let row = Math.max(0, y - 1); row <= Math.min(height - 1, y + 1); row++)
        for (let column = Math.max(0, x - 1); column <= Math.min(width - 1, x + 1); column++) {
          const at = row * width + column
          if (left[at] === 0) continue
          left[at] = 0
          group.push(at)
        }
    }
    groups.push(group)
  }
  return groups
}

const pieceOf = (group: readonly number[], labs: readonly Lab[], picture: Picture): Piece => {
  const names = new Map<ColourName, number>()
  let [x, y] = [0, 0]
  for (const at of group) {
    const name = colourName(labs[at]!)
    names.set(name, (names.get(name) ?? 0) + 1)
    x += (at % picture.width) + 0.5
    y += Math.floor(at / picture.width) + 0.5
  }
  const area = group.length
  return { area, names, x: x / area / picture.width, y: y / area / picture.height }
}

/** What stands before the plain background of a picture, largest first. */
export const seenIn = (picture: Picture): Seen => {
  const { data, width, height } = picture
  const labs = Array.from({ length: width * height }, (_, at) =>
    labOf(data[3 * at]!, data[3 * at + 1]!, data[3 * at + 2]!),
  )
  const edge = edgeColour(picture, labs)
  const mask = Uint8Array.from(labs, (lab) =>
    Math.hypot(lab[0] - edge[0], lab[1] - edge[1], lab[2] - edge[2]) > backgroundDistance ? 1 : 0,
  )
  const pieces = groupsOf(mask, width, height)
    .filter(({ length }) => length > leastShare * width * height)
    .map((group) => pieceOf(group, labs, picture))
    .toSorted((a, b) => b.area - a.area)
  return { pieces, share: pieces.reduce((sum, { area }) => sum + area, 0) / (width * height) }
}
