/** The columns keep their first names: `job` is the handler's name, `payload` the encoded job. */
export interface QueueTables {
  readonly queue_payload: {
    readonly id: string
    readonly job: string
    readonly payload: string
    readonly key: string | null
    readonly priority: number
    /** The number of runs that have begun. */
    readonly attempts: number
    /** When it may run; while it is leased, when its lease ends. */
    readonly due_at: Date
    /** Identifies the claim that holds it; null while it waits. */
    readonly lease: string | null
    /** The error of the last run that failed. */
    readonly error: string | null
    readonly created_at: Date
  }
  readonly queue_dead_letter: {
    readonly id: string
    readonly job: string
    readonly payload: string
    readonly key: string | null
    readonly attempts: number
    readonly error: string
    readonly created_at: Date
    readonly died_at: Date
  }
}
