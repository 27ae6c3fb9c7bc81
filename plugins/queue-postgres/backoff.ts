const firstMs = 1_000
const longestMs = 300_000

/** The wait after the nth failed attempt: 1 s, 2 s, 4 s ... up to 5 minutes, and up to a quarter more, so that what failed together does not come back together. */
export const backoffMs = (attempts: number, random: () => number): number =>
  Math.round(Math.min(firstMs * 2 ** (attempts - 1), longestMs) * (1 + random() / 4))
