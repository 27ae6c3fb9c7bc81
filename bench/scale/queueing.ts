/**
 * The chance that a job has to wait in an M/M/c queue (Erlang C). `offered`: the load in servers,
 * arrivals a second by seconds of service; 1 from `servers` on.
 */
export const erlangC = (servers: number, offered: number): number => {
  if (offered >= servers) return 1
  // Erlang B by its recursion, which neither overflows nor rounds much
  let blocked = 1
  for (let n = 1; n <= servers; n++) blocked = (offered * blocked) / (n + offered * blocked)
  return blocked / (1 - (offered / servers) * (1 - blocked))
}

/** Random numbers that are the same in every run (mulberry32). */
export const randomOf = (seed: number): (() => number) => {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}

type Work = () => void

/** Events in the order of their times: a binary heap. */
const makeAgenda = () => {
  const heap: { readonly at: number; readonly work: Work }[] = []
  const swap = (a: number, b: number) => {
    const one = heap[a]!
    heap[a] = heap[b]!
    heap[b] = one
  }
  const push = (at: number, work: Work) => {
    heap.push({ at, work })
    for (let i = heap.length - 1; i > 0; ) {
      const parent = (i - 1) >> 1
      if (heap[parent]!.at <= heap[i]!.at) return
      swap(i, parent)
      i = parent
    }
  }
  const pop = () => {
    const first = heap[0]
    const last = heap.pop()
    if (heap.length === 0 || !last) return first
    heap[0] = last
    for (let i = 0; ; ) {
      const [left, right] = [2 * i + 1, 2 * i + 2]
      let least = i
      if (left < heap.length && heap[left]!.at < heap[least]!.at) least = left
      if (right < heap.length && heap[right]!.at < heap[least]!.at) least = right
      if (least === i) return first
      swap(i, least)
      i = least
    }
  }
  return { push, pop }
}

/** Times in ms. */
export interface SimulatedSystem {
  /** Arrivals at random; or `connections`, of which each sends its next call when it has its reply. */
  readonly perSecond: number
  readonly connections?: number
  /** Each with one thread that serves. */
  readonly processes: number
  /** CPU of a call in its process, exponential: half before admission, half after settlement. */
  readonly callMs: number
  readonly databaseCores: number
  /** CPU of a statement, and what each call in it adds. */
  readonly statementMs: number
  readonly itemMs: number
  /** Most calls in one statement. */
  readonly gathered: number
  /** A flush of the write-ahead log; commits that wait for it share the next one. */
  readonly flushMs: number
}

export interface SimulatedTimes {
  readonly meanMs: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** Calls that ended in a second. */
  readonly perSecond: number
  readonly callsPerSettlement: number
}

/** Servers that take jobs in their order. */
const makeServers = (count: number, after: (ms: number, work: Work) => void) => {
  const waiting: { readonly ms: number; readonly done: Work }[] = []
  let busy = 0
  const start = (ms: number, done: Work) => {
    busy++
    after(ms, () => {
      busy--
      const next = waiting.shift()
      if (next) start(next.ms, next.done)
      done()
    })
  }
  return (ms: number, done: Work) =>
    busy < count ? start(ms, done) : void waiting.push({ ms, done })
}

type Run = (group: number, done: Work) => void

/** One group at a time; who comes meanwhile goes with the next one. */
const makeLine = (gathered: number, run: Run) => {
  const waiting: Work[] = []
  let isBusy = false
  const pump = () => {
    if (isBusy || waiting.length === 0) return
    isBusy = true
    const group = waiting.splice(0, gathered)
    run(group.length, () => {
      isBusy = false
      for (const done of group) done()
      pump()
    })
  }
  return (done: Work) => {
    waiting.push(done)
    pump()
  }
}

/**
 * Calls arrive at random, go to a process at random, and pass its thread, the line of its
 * admissions, the line of its settlements with the flush, and the thread again. The model's own
 * time is not in it.
 */
export const simulate = (system: SimulatedSystem, calls = 20_000, seed = 1): SimulatedTimes => {
  const random = randomOf(seed)
  const exponential = (mean: number) => -mean * Math.log(1 - random())
  const agenda = makeAgenda()
  let nowMs = 0
  const after = (ms: number, work: Work) => agenda.push(nowMs + ms, work)
  const database = makeServers(system.databaseCores, after)
  const flush = makeLine(Number.POSITIVE_INFINITY, (_, done) => after(system.flushMs, done))
  let settled = 0
  let settlements = 0
  const work = (group: number) => system.statementMs + (group * system.itemMs) / 2
  const processes = Array.from({ length: system.processes }, () => ({
    thread: makeServers(1, after),
    admit: makeLine(system.gathered, (group, done) => database(work(group), done)),
    settle: makeLine(system.gathered, (group, done) => {
      settled += group
      settlements++
      database(work(group), () => flush(done))
    }),
  }))
  const times: number[] = []
  const warm = calls / 5
  let begun = 0
  const arrive = () => {
    const n = begun++
    const fromMs = nowMs
    const { thread, admit, settle } = processes[Math.floor(random() * processes.length)]!
    const half = () => exponential(system.callMs / 2)
    const end = () => {
      if (n >= warm) times.push(nowMs - fromMs)
      if (system.connections !== undefined && begun < calls) arrive()
    }
    thread(half(), () => admit(() => settle(() => thread(half(), end))))
    if (system.connections === undefined && begun < calls)
      after(exponential(1000 / system.perSecond), arrive)
  }
  for (let n = 0; n < (system.connections ?? 1); n++) after(0, arrive)
  for (let next = agenda.pop(); next; next = agenda.pop()) {
    nowMs = next.at
    next.work()
  }
  times.sort((a, b) => a - b)
  const at = (share: number) => times[Math.floor(times.length * share)] ?? Number.NaN
  return {
    meanMs: times.reduce((sum, ms) => sum + ms, 0) / times.length,
    p50Ms: at(0.5),
    p99Ms: at(0.99),
    perSecond: (calls * 1000) / nowMs,
    callsPerSettlement: settled / settlements,
  }
}
