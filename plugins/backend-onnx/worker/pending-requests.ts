import { type ApiError, apiError } from "../../../core/errors.ts"
import type { Log } from "../../../core/services/log.ts"
import type { FromThread, Priority, StageTime } from "./protocol.ts"

export const retryAfterMs = 1_000

type Failed = Extract<FromThread<never, never>, { readonly type: "failed" }>
/** A dead end or a grammar that fails is the schema's and the model's, not the engine's. */
const failures = {
  engine: apiError("backend_error"),
  grammar: apiError(
    "schema_not_satisfied",
    "The grammar that keeps the answer to its schema or tools became too complex, so the answer was ended; it is not charged.",
  ),
  grammarLate: apiError("server_busy"),
  deadEnd: apiError("schema_not_satisfied"),
}

/** A running stream, from the host's side. */
interface Pending<Event> {
  readonly priority: Priority
  event(event: Event | StageTime): void
  done(): void
  failed(error: ApiError): void
}

type Message<Event> = Extract<FromThread<Event, never>, { readonly id: number }>

/** The requests that a thread has and has not ended: each is one stream. */
export class PendingRequests<Event> {
  private readonly pending = new Map<number, Pending<Event>>()
  private readonly log: Log
  private readonly model: string
  private nextId = 0
  private ended = 0

  constructor(log: Log, model: string) {
    this.log = log
    this.model = model
  }

  /** Ended by the thread since `restart`. */
  get completed(): number {
    return this.ended
  }

  restart(): void {
    this.ended = 0
  }

  count(priority: Priority): number {
    let count = 0
    for (const pending of this.pending.values()) if (pending.priority === priority) count++
    return count
  }

  add(pending: Pending<Event>): number {
    const id = this.nextId++
    this.pending.set(id, pending)
    return id
  }

  /** Whether the thread still had it. */
  remove(id: number): boolean {
    return this.pending.delete(id)
  }

  readonly receive = (message: Message<Event>): void => {
    const pending = this.pending.get(message.id)
    if (!pending) return
    if (message.type === "event") {
      pending.event(message.event)
      return
    }
    this.pending.delete(message.id)
    this.ended++
    if (message.type === "done") pending.done()
    else if (message.type === "busy")
      pending.failed(
        apiError("backend_busy", "No slot of the model became free in time.", { retryAfterMs }),
      )
    else this.fail(pending, message)
  }

  private fail(pending: Pending<Event>, { message: reason, why }: Failed): void {
    if (why !== "deadEnd")
      this.log.error("engine.request_failed", "a request failed in the engine", {
        model: this.model,
        reason,
      })
    pending.failed(failures[why ?? "engine"])
  }

  /** Fails all of them; returns how many there were. */
  failAll(): number {
    const lost = [...this.pending.values()]
    this.pending.clear()
    for (const pending of lost) pending.failed(apiError("backend_error"))
    return lost.length
  }
}
