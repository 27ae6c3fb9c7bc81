const dot = (a, b) => a.reduce((sum, x, at) => sum + x * b[at], 0)

/** From -1 to 1; 0 for a vector without direction. */
export const cosine = (a, b) => {
  const size = Math.sqrt(dot(a, a) * dot(b, b))
  return size === 0 ? 0 : Math.max(-1, Math.min(1, dot(a, b) / size))
}

export const similarities = (vectors) => vectors.map((a) => vectors.map((b) => cosine(a, b)))

/** How many steps of colour there are. */
export const steps = 7

/** The step of colour of a similarity: what is below 0 is as pale as 0. */
export const stepOf = (value) => Math.max(0, Math.min(steps - 1, Math.floor(value * steps)))

/** For each row the other one that is most like it: `{ index, value }`, or undefined where there is no other. */
export const nearest = (matrix) =>
  matrix.map((row, from) =>
    row
      .map((value, index) => ({ value, index }))
      .filter(({ index }) => index !== from)
      .reduce((best, one) => (best && best.value >= one.value ? best : one), undefined),
  )

const centred = (vectors) => {
  const mean = vectors[0].map(
    (_, at) => vectors.reduce((sum, vector) => sum + vector[at], 0) / vectors.length,
  )
  return vectors.map((vector) => vector.map((x, at) => x - mean[at]))
}

/** Turns rows and columns `p` and `q` so that the entry between them becomes 0. */
const rotate = (matrix, basis, p, q) => {
  const theta = (matrix[q][q] - matrix[p][p]) / (2 * matrix[p][q])
  const tangent = (theta < 0 ? -1 : 1) / (Math.abs(theta) + Math.hypot(theta, 1))
  const cos = 1 / Math.hypot(tangent, 1)
  const sin = tangent * cos
  const turn = (row) => {
    const [x, y] = [row[p], row[q]]
    row[p] = cos * x - sin * y
    row[q] = sin * x + cos * y
  }
  for (const row of [...matrix, ...basis]) turn(row)
  const [upper, lower] = [matrix[p], matrix[q]]
  matrix[p] = upper.map((x, at) => cos * x - sin * lower[at])
  matrix[q] = upper.map((x, at) => sin * x + cos * lower[at])
}

const mostSweeps = 50

/** Eigenvalues and eigenvectors of a symmetric matrix, largest first (Jacobi). */
const eigen = (symmetric) => {
  const matrix = symmetric.map((row) => [...row])
  const basis = matrix.map((_, i) => matrix.map((_, j) => (i === j ? 1 : 0)))
  const small = 1e-12 * Math.max(...matrix.map((row, at) => Math.abs(row[at])))
  for (let sweep = 0; sweep < mostSweeps; sweep++) {
    let isDone = true
    for (let p = 0; p < matrix.length; p++)
      for (let q = p + 1; q < matrix.length; q++)
        if (Math.abs(matrix[p][q]) > small) {
          rotate(matrix, basis, p, q)
          isDone = false
        }
    if (isDone) break
  }
  return matrix
    .map((row, at) => ({ value: Math.max(0, row[at]), vector: basis.map((line) => line[at]) }))
    .sort((a, b) => b.value - a.value)
}

/** Eigenvectors have no sign of their own: the longest coordinate goes to the right, or up. */
const signed = (vector) => {
  const longest = vector.reduce((best, x) => (Math.abs(x) > Math.abs(best) + 1e-9 ? x : best), 0)
  return longest < 0 ? vector.map((x) => -x) : vector
}

/**
 * The two principal components: `{ points: [[x, y]], kept }`, where `kept` is the part of the variance that the plane shows.
 * There are far fewer vectors than dimensions, so the products between vectors are decomposed, which has the same result.
 */
export const toPlane = (vectors) => {
  if (vectors.length < 2) return { points: vectors.map(() => [0, 0]), kept: 1 }
  const rows = centred(vectors)
  const found = eigen(rows.map((a) => rows.map((b) => dot(a, b))))
  const whole = found.reduce((sum, { value }) => sum + value, 0)
  // identical vectors differ by rounding alone
  if (whole < 1e-12) return { points: vectors.map(() => [0, 0]), kept: 1 }
  const [x, y] = found
    .slice(0, 2)
    .map(({ value, vector }) => signed(vector).map((part) => part * Math.sqrt(value)))
  const kept = (found[0].value + found[1].value) / whole
  return { points: vectors.map((_, at) => [x[at], y[at]]), kept }
}

/** Puts points into a frame of the given size, both axes to the same scale; y goes down, as in SVG. */
export const fitted = (points, { width, height, margin }) => {
  const range = (axis) => {
    const all = points.map((point) => point[axis])
    return [Math.min(...all), Math.max(...all)]
  }
  const [[left, right], [bottom, top]] = [range(0), range(1)]
  const scale = Math.min(
    (width - 2 * margin) / Math.max(right - left, 1e-9),
    (height - 2 * margin) / Math.max(top - bottom, 1e-9),
  )
  const middle = [(left + right) / 2, (bottom + top) / 2]
  return points.map(([x, y]) => [
    width / 2 + (x - middle[0]) * scale,
    height / 2 - (y - middle[1]) * scale,
  ])
}

const rounds = 60

/** Moves points that would cover each other apart, as little as that takes, within the frame. */
export const apart = (points, { width, height, radius }) => {
  const moved = points.map(([x, y]) => [x, y])
  const push = (a, b, turn) => {
    const [dx, dy] = [b[0] - a[0], b[1] - a[1]]
    const distance = Math.hypot(dx, dy)
    const missing = (2 * radius - distance) / 2
    if (missing <= 0) return
    // points on one spot have no direction: each pair gets one
    const [ux, uy] =
      distance > 1e-9 ? [dx / distance, dy / distance] : [Math.cos(turn), Math.sin(turn)]
    const within = (x, most) => Math.max(radius, Math.min(most - radius, x))
    a[0] = within(a[0] - ux * missing, width)
    a[1] = within(a[1] - uy * missing, height)
    b[0] = within(b[0] + ux * missing, width)
    b[1] = within(b[1] + uy * missing, height)
  }
  for (let round = 0; round < rounds; round++)
    for (let i = 0; i < moved.length; i++)
      for (let j = i + 1; j < moved.length; j++) push(moved[i], moved[j], i + 2 * j)
  return moved
}

const overlaps = (a, b) =>
  a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom

const around = ([x, y], radius) => ({
  left: x - radius,
  right: x + radius,
  top: y - radius,
  bottom: y + radius,
})

/**
 * Where the text of each point has room, right or left of it: `{ x, anchor }`, or undefined where it would leave the frame, or lie
 * on a point or another text. `letter`: the width and height of one.
 */
export const placed = (points, texts, { width, radius, letter }) => {
  const taken = points.map((point) => around(point, radius))
  return points.map(([x, y], at) => {
    const long = texts[at].length * letter.width
    const gap = radius + 2
    const sides = [
      { x: x + gap, anchor: "start", left: x + gap, right: x + gap + long },
      { x: x - gap, anchor: "end", left: x - gap - long, right: x - gap },
    ]
    const found = sides.find((side) => {
      const box = { ...side, top: y - letter.height / 2, bottom: y + letter.height / 2 }
      const isFree = box.left >= 0 && box.right <= width && !taken.some((one) => overlaps(box, one))
      if (isFree) taken.push(box)
      return isFree
    })
    return found && { x: found.x, anchor: found.anchor }
  })
}
