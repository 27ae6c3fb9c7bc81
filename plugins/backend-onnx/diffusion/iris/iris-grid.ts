/** Patches of a canvas: so many rows of so many columns. */
export interface Grid {
  readonly rows: number
  readonly columns: number
}

// what the model was trained on: 8 x 8, and other proportions of about as many
const fewest = 54
const most = 70

/**
 * The grid that comes nearest to the proportions of a picture; among equal ones that with the most
 * patches.
 */
export const gridOf = (width: number, height: number): Grid => {
  const candidates: Grid[] = []
  for (let rows = 1; rows <= most; rows++)
    for (let columns = Math.ceil(fewest / rows); columns * rows <= most; columns++)
      candidates.push({ rows, columns })
  const gap = ({ rows, columns }: Grid) => Math.abs(Math.log((columns * height) / (rows * width)))
  const area = ({ rows, columns }: Grid) => Math.abs(rows * columns - 64)
  return candidates.sort((a, b) => gap(a) - gap(b) || area(a) - area(b))[0]!
}

/** What the denoiser knows of where its tokens are. */
export interface GridTables {
  /** `[tokens, 6 * frequencies]`, see `placeFeatures`. */
  readonly places: Float32Array
  /** Rotary tables `[tokens, headSize / 2]`: the first half by row, the other by column. */
  readonly cos: Float32Array
  readonly sin: Float32Array
  /** Where tokens of the canvas read the square sketch, `[tokens, sketchGrid^2]`. */
  readonly across: Float32Array
}

export interface GridSizes {
  readonly frequencies: number
  readonly headSize: number
  readonly theta: number
  readonly sketchGrid: number
}

const counted = (count: number): readonly number[] => Array.from({ length: count }, (_, i) => i)

/** Rows and columns of a grid's tokens, from its middle. */
const placesIn = ({ rows, columns }: Grid): readonly (readonly [row: number, column: number])[] =>
  counted(rows * columns).map((token) => [
    Math.floor(token / columns) - (rows - 1) / 2,
    (token % columns) - (columns - 1) / 2,
  ])

/**
 * Sines, then cosines `[tokens, 6 * frequencies]` of each token's place: in tokens from the middle,
 * and as a part of the grid's size (`position_features` of the recipe).
 */
export const placeFeatures = (grid: Grid, frequencies: number): Float32Array => {
  const near = (place: number) => counted(frequencies).map((i) => place * (i + 1) * (Math.PI / 16))
  const far = (part: number) => counted(frequencies / 2).map((i) => part * (i + 1) * Math.PI)
  const angles = ([row, column]: readonly [number, number]) => [
    ...near(row),
    ...near(column),
    ...far(row / grid.rows),
    ...far(column / grid.columns),
  ]
  return Float32Array.from(
    placesIn(grid).flatMap((place) => {
      const all = angles(place)
      return [...all.map(Math.sin), ...all.map(Math.cos)]
    }),
  )
}

/** Angles `[tokens, headSize / 2]`. */
const rotations = (grid: Grid, headSize: number, theta: number): Float32Array => {
  const quarter = headSize / 4
  return Float32Array.from(
    placesIn(grid).flatMap((place) =>
      place.flatMap((along) => counted(quarter).map((i) => along * theta ** (-i / quarter))),
    ),
  )
}

/**
 * Bilinear shares `[tokens, size^2]` of the square sketch, which is scaled to the canvas' smaller
 * side; its border goes on outside.
 */
const sketchShares = (grid: Grid, size: number): Float32Array => {
  const along = (place: number) => {
    const spot = (place * size) / Math.min(grid.rows, grid.columns) + (size - 1) / 2
    const bounded = Math.min(size - 1, Math.max(0, spot))
    return counted(size).map((i) => Math.max(0, 1 - Math.abs(bounded - i)))
  }
  return Float32Array.from(
    placesIn(grid).flatMap(([row, column]) => {
      const columns = along(column)
      return along(row).flatMap((share) => columns.map((other) => share * other))
    }),
  )
}

const repeated = (values: Float32Array, copies: number): Float32Array => {
  const all = new Float32Array(copies * values.length)
  for (let copy = 0; copy < copies; copy++) all.set(values, copy * values.length)
  return all
}

/** Tables of a grid, once for the canvas and once for each reference, which has no sketch. */
export const gridTables = (
  grid: Grid,
  copies: number,
  { frequencies, headSize, theta, sketchGrid }: GridSizes,
): GridTables => {
  const angles = rotations(grid, headSize, theta)
  const across = new Float32Array(copies * grid.rows * grid.columns * sketchGrid ** 2)
  across.set(sketchShares(grid, sketchGrid))
  return {
    places: repeated(placeFeatures(grid, frequencies), copies),
    cos: repeated(angles.map(Math.cos), copies),
    sin: repeated(angles.map(Math.sin), copies),
    across,
  }
}
