import { Effect, type Scope } from "effect"
import type {
  Billing,
  Clock,
  Database,
  Deployment,
  Endpoint,
  Ids,
  Log,
  Mailer,
  Secrets,
  Signer,
} from "../../core/index.ts"
import { makeAccountRows } from "./account-rows.ts"
import { makeAudit } from "./audit/make-audit.ts"
import { makeBackground } from "./background.ts"
import type { AccountsDeps } from "./deps.ts"
import { makeKeyRows } from "./key-rows.ts"
import { makeLastUsed } from "./last-used.ts"
import { makeLimiter } from "./limits/limiter.ts"
import { makeMailTokens } from "./mails/mail-tokens.ts"
import { endingSessions, makeSessionRows } from "./sessions/session-rows.ts"
import { makeSessions } from "./sessions/sessions.ts"
import { limitsOf, type Settings } from "./settings.ts"

/** The services and settings that the plugin gets. */
export interface AccountsServices {
  readonly database: Database
  readonly billing: Billing
  readonly signer: Signer
  readonly secrets: Secrets
  readonly mailer: Mailer
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly deployment: Deployment
  readonly settings: Settings
  endpoints(): readonly Endpoint[]
  /** The ids of all models that are served. */
  models(): readonly string[]
}

export const makeAccountsDeps = (
  services: AccountsServices,
): Effect.Effect<AccountsDeps, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { database, clock, ids, log, settings, signer } = services
    const audit = makeAudit(database, clock, ids)
    const sessionRows = makeSessionRows(database, audit)
    const accounts = endingSessions(makeAccountRows(database), sessionRows)
    const lastSeen = makeLastUsed(sessionRows, clock, log)
    const limiter = makeLimiter(database, clock)
    const keys = makeKeyRows(database)
    return {
      ...services,
      accounts,
      keys,
      keyChanges: keys.changes,
      audit,
      limiter,
      tokens: makeMailTokens(database, clock, audit, limiter),
      background: yield* makeBackground(log),
      sessionRows,
      lastSeen,
      sessions: makeSessions({
        ...{ database, rows: sessionRows, lastSeen, ids },
        signer,
        accounts,
        audit,
        limiter,
        keyChanges: keys.changes,
        clock,
        limits: limitsOf(settings),
      }),
    }
  })
