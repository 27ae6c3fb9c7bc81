/** The probabilities of the classes of nsfwjs; their sum is 1. */
export interface Classes {
  readonly drawing: number
  readonly hentai: number
  readonly neutral: number
  readonly porn: number
  readonly sexy: number
}

export interface Thresholds {
  readonly porn: number
  readonly hentai: number
  readonly sexy: number
}

const judged = ["porn", "hentai", "sexy"] as const

/** Whether a class reaches its threshold; none reaches 1. */
export const isExplicit = (classes: Classes, thresholds: Thresholds): boolean =>
  judged.some((name) => thresholds[name] < 1 && classes[name] >= thresholds[name])
