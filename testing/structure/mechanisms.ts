import { isTest, type Rule, withoutComments } from "./sources.ts"

/** Drivers: what wakes them, or how a run ended, decides when they run again. */
const drivers: readonly string[] = [
  "plugins/accounts/background.ts",
  "plugins/accounts/last-used.ts",
  "plugins/endpoint-batches/work/lease.ts",
  "plugins/endpoint-batches/work/worker.ts",
  "plugins/mail-smtp/dispatcher.ts",
  "plugins/queue-postgres/driver.ts",
]

export const repeatsByTheHelper: Rule = ({ path, text }) =>
  !isTest(path) &&
  path.startsWith("plugins/") &&
  !drivers.includes(path) &&
  /\bEffect\.forever\b/.test(withoutComments(text))
    ? ["loops by hand; periodic work runs through repeat of core/repeat.ts"]
    : []

export const namesItsEvents: Rule = ({ path, text }) =>
  isTest(path) || path === "core/repeat.ts"
    ? []
    : [...withoutComments(text).matchAll(/\blog\.(?:debug|info|warn|error)\((\s*)(?!\s|")/g)].map(
        () => "logs without an event as a literal, so docs/events.md misses it",
      )

export const readsUrlsByTheHelper: Rule = ({ path, text }) =>
  !isTest(path) && /\bURL\.canParse\(/.test(withoutComments(text))
    ? ["asks URL.canParse, which Node 20 answers wrongly; read URLs by urlOf (core/url.ts)"]
    : []
