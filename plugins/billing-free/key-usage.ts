import type { AdmitRequest, Limits, RateState, Refusal } from "../../core/index.ts"

const minuteMs = 60_000
const dayMs = 86_400_000
const dayOf = (ms: number) => Math.floor(ms / dayMs)

/** One call of the rolling minute. `counted` is false once it left the minute or was given back. */
export interface Mark {
  readonly atMs: number
  counted: boolean
}

/**
 * The usage of one key in this process. The minute holds at most as many marks as calls that RPM
 * admitted (or gave back) in it; marks that left the minute, or were given back at either end, are
 * dropped.
 */
export class KeyUsage {
  #minute: Mark[] = []
  #first = 0
  #used = 0
  #day = 0
  #dayCalls = 0
  #openCalls = 0

  get idle(): boolean {
    return this.#openCalls === 0
  }

  #moveTo(nowMs: number): void {
    if (dayOf(nowMs) > this.#day) {
      this.#day = dayOf(nowMs)
      this.#dayCalls = 0
    }
    for (
      let mark = this.#minute[this.#first];
      mark && (!mark.counted || mark.atMs <= nowMs - minuteMs);
      mark = this.#minute[this.#first]
    ) {
      if (mark.counted) this.#used--
      mark.counted = false
      this.#first++
    }
    while (this.#minute.length > this.#first && !this.#minute.at(-1)?.counted) this.#minute.pop()
    // dropped marks are removed once they are more than half, so that this costs O(1) a call
    if (this.#first * 2 <= this.#minute.length) return
    this.#minute = this.#minute.slice(this.#first)
    this.#first = 0
  }

  rate(limit: number, nowMs: number): RateState {
    this.#moveTo(nowMs)
    const newest = this.#minute.at(-1)
    return {
      limit,
      remaining: Math.max(0, limit - this.#used),
      resetMs: newest ? newest.atMs + minuteMs - nowMs : 0,
    }
  }

  check(
    counts: AdmitRequest["counts"],
    limits: Limits,
    nowMs: number,
  ): Pick<Refusal, "reason" | "retryAfterMs"> | undefined {
    this.#moveTo(nowMs)
    if (counts === "peek" || counts === "money") return undefined
    if (this.#used >= limits.rpm)
      return {
        reason: "rpm",
        retryAfterMs: (this.#minute[this.#first]?.atMs ?? nowMs) + minuteMs - nowMs,
      }
    if (counts === "rpm") return undefined
    if (this.#dayCalls >= limits.rpd)
      return { reason: "rpd", retryAfterMs: (this.#day + 1) * dayMs - nowMs }
    return this.#openCalls >= limits.concurrency
      ? { reason: "concurrency", retryAfterMs: 1000 }
      : undefined
  }

  /** Counts a call that `check` admitted. A whole call keeps its slot until `end`. */
  take(whole: boolean, nowMs: number): Mark {
    const mark = { atMs: nowMs, counted: true }
    this.#minute.push(mark)
    this.#used++
    if (whole) this.#dayCalls++
    if (whole) this.#openCalls++
    return mark
  }

  end(mark: Mark, refused: boolean): void {
    this.#openCalls--
    if (!refused) return
    if (dayOf(mark.atMs) === this.#day) this.#dayCalls--
    if (!mark.counted) return
    mark.counted = false
    this.#used--
  }
}
