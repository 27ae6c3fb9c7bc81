/**
 * The number of runs of a property: all of them with `RAKIT_TEST_RUNS_IN_FULL=1`, as in CI,
 * otherwise a tenth. Samples are random, so several runs of the suite find what one run of all would.
 */
export const runs = (full: number): number =>
  process.env.RAKIT_TEST_RUNS_IN_FULL ? full : Math.ceil(full / 10)
