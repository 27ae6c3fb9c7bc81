/**
 * How often a property is tried. CI asks for all of them (`RAKIT_TEST_RUNS_IN_FULL=1`); while somebody works a quarter is enough: as the samples
 * are new every time, a fault that is there is found within a few runs of the suite.
 */
export const runs = (full: number): number =>
  process.env.RAKIT_TEST_RUNS_IN_FULL ? full : Math.ceil(full / 4)
