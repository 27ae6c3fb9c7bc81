import type { Duplex } from "node:stream"
import pg from "pg"
import { PortError } from "../../core/errors.ts"
import { reasonOf } from "./failure.ts"

export interface WatchOptions {
  readonly address: () => pg.ClientConfig
  readonly connectTimeoutMs: number
  readonly onDown: (reason: string) => void
  readonly onUp: (downMs: number) => void
}

export interface Watch {
  /** Undefined while the server answers. */
  readonly down: () => PortError | undefined
  /** Something failed that may mean an outage: looks whether it is one. */
  suspect(): void
  /** A statement was sent; `abandon` ends it when nothing answers. Returns what ends the watch of it. */
  sent(abandon: () => void): () => void
  /** Calls `listener` when the server goes down. Returns what ends that. */
  onDown(listener: (error: PortError) => void): () => void
  close(): void
}

/** A statement that takes longer is a reason to look. */
const patienceMs = 1_000
/** A server that does not answer the look for this long is down; callers fail at once from then on. */
const unansweredMs = 2_000
/** And what was sent to it before is given up. */
const abandonedMs = 5_000
const lookEveryMs = 250
/** A timer that is later than this says that this process was busy, and nothing about the server. */
const latenessMs = 250

const startingUp = "57P03"
/** Connections that are open are dead, too; they may live when a name can't be resolved. */
const unreachable = /timeout|EHOSTUNREACH|EHOSTDOWN|ENETUNREACH|ENETDOWN/

/** It refuses us, but it answers: connections that are open go on. */
const answers = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && error.code !== startingUp

/** Not in the types of `pg`. */
export const streamOf = (client: pg.ClientBase): Duplex =>
  (client as unknown as { readonly connection: { readonly stream: Duplex } }).connection.stream

/** `triesLeft`: a connection that was made and then ended says little: it is made again. */
const ask = async (address: pg.ClientConfig, limitMs: number, triesLeft = 1): Promise<void> => {
  let isConnected = false
  const client = new pg.Client({
    ...address,
    application_name: "rakit watch",
    connectionTimeoutMillis: limitMs,
    query_timeout: limitMs,
  })
  client.on("error", () => {})
  try {
    await client.connect()
    isConnected = true
    await client.query("select 1")
    await client.end()
  } catch (error) {
    // without a goodbye, for which nobody may answer
    streamOf(client).destroy()
    if (answers(error)) return
    if (!isConnected || triesLeft === 0 || unreachable.test(reasonOf(error))) throw error
    await ask(address, limitMs, triesLeft - 1)
  }
}

/** Runs `work` after `ms` in which this process could have heard an answer. */
const afterQuiet = (ms: number, work: () => void): (() => void) => {
  let timer: NodeJS.Timeout
  const arm = () => {
    const dueMs = performance.now() + ms
    timer = setTimeout(() => (performance.now() - dueMs > latenessMs ? arm() : work()), ms)
    timer.unref()
  }
  arm()
  return () => clearTimeout(timer)
}

const pause = (ms: number) =>
  new Promise<void>((resolve) => {
    setTimeout(resolve, ms).unref()
  })

interface Sent {
  sinceMs: number
  /** Its place among the others; -1: it has ended. */
  at: number
  readonly abandon: () => void
}

/**
 * What was sent and has no answer yet. A Set would leave a table behind whenever it grows or shrinks,
 * each pointing to the next, and with them V8 would keep every statement until a full collection.
 */
const makeSent = () => {
  const sent: Sent[] = []
  const end = (one: Sent): boolean => {
    if (one.at < 0) return false
    const last = sent.pop()!
    if (last !== one) {
      sent[one.at] = last
      last.at = one.at
    }
    one.at = -1
    return true
  }
  const olderThan = (ms: number) => {
    const nowMs = performance.now()
    return sent.filter(({ sinceMs }) => nowMs - sinceMs > ms)
  }
  return {
    add: (abandon: () => void) => {
      const one = { sinceMs: performance.now(), at: sent.length, abandon }
      sent.push(one)
      return () => void end(one)
    },
    isSlow: () => olderThan(patienceMs).length > 0,
    /** The server answers: their time begins anew. */
    excuse: () => {
      for (const one of sent) one.sinceMs = performance.now()
    },
    abandonOld: () => {
      for (const one of olderThan(abandonedMs)) if (end(one)) one.abandon()
    },
  }
}

/** States: up -> down -> up. */
const makeState = ({ onDown, onUp }: Pick<WatchOptions, "onDown" | "onUp">) => {
  const listeners = new Set<(error: PortError) => void>()
  let down: { readonly error: PortError; readonly sinceMs: number } | undefined
  return {
    error: () => down?.error,
    goDown: (reason: string) => {
      if (down) return
      const message = `the database is away: ${reason}`
      const error = new PortError({ port: "database", message, why: "unavailable" })
      down = { error, sinceMs: performance.now() }
      onDown(reason)
      for (const listener of [...listeners]) listener(error)
    },
    goUp: () => {
      if (!down) return
      const { sinceMs } = down
      down = undefined
      onUp(performance.now() - sinceMs)
    },
    onDown: (listener: (error: PortError) => void) => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
}

/**
 * Notices a server that is gone, also one behind a network that is cut without a word. States: up
 * -> suspected (a statement takes long, or a connection was refused) -> up | down (refused, or no
 * answer) -> up. It asks on a connection of its own, and only while there is a reason.
 */
export const makeWatch = (options: WatchOptions): Watch => {
  const sent = makeSent()
  const state = makeState(options)
  let isAsking = false
  let isClosed = false

  /** Returns whether it answered. */
  const askOnce = async (): Promise<boolean> => {
    const timers = [
      afterQuiet(unansweredMs, () => state.goDown(`no answer in ${unansweredMs} ms`)),
      afterQuiet(abandonedMs, sent.abandonOld),
    ]
    try {
      await ask(options.address(), options.connectTimeoutMs)
      sent.excuse()
      state.goUp()
      return true
    } catch (error) {
      const reason = reasonOf(error)
      if (!isClosed) state.goDown(reason)
      if (unreachable.test(reason)) sent.abandonOld()
      return false
    } finally {
      for (const stop of timers) stop()
    }
  }
  const suspect = async () => {
    if (isAsking) return
    isAsking = true
    while (!isClosed && !(await askOnce())) await pause(lookEveryMs)
    isAsking = false
  }
  const look = setInterval(() => {
    if (sent.isSlow()) void suspect()
  }, lookEveryMs)
  look.unref()

  return {
    down: state.error,
    suspect: () => void suspect(),
    sent: sent.add,
    onDown: state.onDown,
    close: () => {
      isClosed = true
      clearInterval(look)
    },
  }
}
