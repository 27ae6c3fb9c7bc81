/** A job was cancelled while it was between two steps. */
export class Cancelled extends Error {
  constructor() {
    super("cancelled")
  }
}

interface Waiting<A> {
  resolve(value: A): void
  reject(cause: unknown): void
}

/**
 * A function that runs from one `pause` to the next whenever `next` is called, so that others run
 * in between; what it has made stays in its variables.
 * States: new -> running <-> paused -> ended; cancel: running and paused -> ended.
 */
export class Stepped {
  private readonly run: (pause: () => Promise<void>) => Promise<void>
  private caller: Waiting<boolean> | undefined
  private paused: Waiting<void> | undefined
  private hasBegun = false
  private isCancelled = false

  constructor(run: (pause: () => Promise<void>) => Promise<void>) {
    this.run = run
  }

  /** Runs to the next pause, or to the end: then it returns true. Fails as the function does. */
  next(): Promise<boolean> {
    return new Promise((resolve, reject) => {
      this.caller = { resolve, reject }
      const { paused } = this
      this.paused = undefined
      if (paused) paused.resolve()
      else if (!this.hasBegun) this.begin()
    })
  }

  /** Ends the function at its pause, or at the next one. */
  cancel(): void {
    this.isCancelled = true
    this.paused?.reject(new Cancelled())
    this.paused = undefined
  }

  private begin(): void {
    this.hasBegun = true
    this.run(this.pause).then(
      () => this.caller?.resolve(true),
      (cause) => this.caller?.reject(cause),
    )
  }

  private readonly pause = (): Promise<void> =>
    new Promise((resolve, reject) => {
      if (this.isCancelled) {
        reject(new Cancelled())
        return
      }
      this.paused = { resolve, reject }
      this.caller?.resolve(false)
    })
}
