import type { Browser, BrowserContext, CDPSession, Page } from "playwright-core"

/** What one load of a page was like; times in ms from the navigation. */
export interface PageLoad {
  readonly firstPaintMs: number
  readonly largestPaintMs: number
  /** The sum of layout shifts without input. */
  readonly layoutShift: number
  /** What long tasks took beyond 50 ms each, after the first paint. */
  readonly blockedMs: number
  /** Those that went over the network, event streams included. */
  readonly requests: number
  readonly transferredKb: number
}

export interface Device {
  readonly name: string
  readonly context: NonNullable<Parameters<Browser["newContext"]>[0]>
  /** How many times slower the processor is. */
  readonly slowdown: number
  readonly network?: {
    readonly latency: number
    readonly downloadThroughput: number
    readonly uploadThroughput: number
  }
}

/** A phone as Lighthouse has it: 150 ms, 1.6 Mbit/s down, 0.75 up, a processor 4 times slower. */
export const devices: readonly Device[] = [
  { name: "desktop", context: { viewport: { width: 1280, height: 800 } }, slowdown: 1 },
  {
    name: "phone",
    context: { viewport: { width: 360, height: 800 }, isMobile: true, hasTouch: true },
    slowdown: 4,
    network: {
      latency: 150,
      downloadThroughput: 1_600_000 / 8,
      uploadThroughput: 750_000 / 8,
    },
  },
]

interface Loading extends Device {
  /** A page is loaded when nothing has come for as long. */
  readonly quietMs: number
}

/** Runs in the page before anything else; as text, as the bench knows no types of browsers. */
const observers = `
globalThis.seen = { largestPaintMs: 0, layoutShift: 0, tasks: [] }
const observe = (type, take) =>
  new PerformanceObserver((list) => list.getEntries().forEach(take)).observe({ type, buffered: true })
observe("largest-contentful-paint", (entry) => { seen.largestPaintMs = entry.startTime })
observe("layout-shift", (entry) => { if (!entry.hadRecentInput) seen.layoutShift += entry.value })
observe("longtask", (entry) => { seen.tasks.push([entry.startTime, entry.duration]) })
`
const readSeen = `(() => {
  const firstPaintMs = performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? NaN
  const after = seen.tasks.filter(([start, ms]) => start + ms > firstPaintMs)
  const blockedMs = after.reduce((sum, [, ms]) => sum + Math.max(0, ms - 50), 0)
  return { firstPaintMs, largestPaintMs: seen.largestPaintMs, layoutShift: seen.layoutShift, blockedMs }
})()`

/** Counts what goes over the network, and knows how long it has been quiet. */
const watchNetwork = async (session: CDPSession) => {
  const cached = new Set<string>()
  const sent = new Set<string>()
  let bytes = 0
  let changedMs = performance.now()
  const changed = () => {
    changedMs = performance.now()
  }
  await session.send("Network.enable")
  session.on("Network.requestWillBeSent", ({ requestId, request }) => {
    changed()
    if (request.url.startsWith("http")) sent.add(requestId)
  })
  session.on("Network.requestServedFromCache", ({ requestId }) => cached.add(requestId))
  session.on("Network.responseReceived", ({ requestId, response }) => {
    changed()
    if (response.fromDiskCache || response.fromPrefetchCache) cached.add(requestId)
  })
  session.on("Network.dataReceived", ({ encodedDataLength }) => {
    changed()
    bytes += encodedDataLength
  })
  return {
    quietMs: () => performance.now() - changedMs,
    counted: () => ({
      requests: [...sent].filter((id) => !cached.has(id)).length,
      transferredKb: bytes / 1000,
    }),
  }
}

const mostMs = 60_000

/** Until nothing has come for a while; an event stream that is silent may stay open. */
const untilQuiet = async (page: Page, quietMs: () => number, forMs: number): Promise<void> => {
  const untilMs = performance.now() + mostMs
  while (quietMs() < forMs && performance.now() < untilMs) await page.waitForTimeout(100)
}

const load = async (context: BrowserContext, device: Loading, url: string, isCold: boolean) => {
  const page = await context.newPage()
  try {
    const session = await context.newCDPSession(page)
    const network = await watchNetwork(session)
    if (isCold) await session.send("Network.clearBrowserCache")
    await session.send("Emulation.setCPUThrottlingRate", { rate: device.slowdown })
    if (device.network)
      await session.send("Network.emulateNetworkConditions", { offline: false, ...device.network })
    await page.addInitScript(observers)
    await page.goto(url)
    await untilQuiet(page, network.quietMs, device.quietMs)
    const seen = await page.evaluate<Omit<PageLoad, "requests" | "transferredKb">>(readSeen)
    return { ...seen, ...network.counted() } satisfies PageLoad
  } finally {
    await page.close()
  }
}

/** Loads a page with an empty cache, and again with what the browser has kept. */
export const loadTwice = async (
  browser: Browser,
  device: Loading,
  url: string,
  prepare: (page: Page) => Promise<void>,
): Promise<{ readonly cold: PageLoad; readonly warm: PageLoad }> => {
  const context = await browser.newContext({ locale: "en-GB", ...device.context })
  try {
    const page = await context.newPage()
    await prepare(page)
    await page.close()
    const cold = await load(context, device, url, true)
    return { cold, warm: await load(context, device, url, false) }
  } finally {
    await context.close()
  }
}
