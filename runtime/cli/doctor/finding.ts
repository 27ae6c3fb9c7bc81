/** ok; warning: it works, but less well than it could; problem: it does not work. */
export type State = "ok" | "warning" | "problem"

/** What one check found. */
export interface Finding {
  /** What was looked at: `memory`. */
  readonly name: string
  readonly state: State
  readonly detail: string
  /** What to do about a warning or a problem. */
  readonly fix?: string
}

export const ok = (name: string, detail: string): Finding => ({ name, state: "ok", detail })
export const warning = (name: string, detail: string, fix: string): Finding => ({
  ...{ name, detail, fix },
  state: "warning",
})
export const problem = (name: string, detail: string, fix: string): Finding => ({
  ...{ name, detail, fix },
  state: "problem",
})

/** `2.4 GB`, `61 MB` */
export const sizeText = (bytes: number): string =>
  bytes >= 2 ** 30 ? `${(bytes / 2 ** 30).toFixed(1)} GB` : `${Math.ceil(bytes / 2 ** 20)} MB`
