import { Effect } from "effect"
import type { ColumnType, Generated } from "kysely"
import {
  type Clock,
  type Database,
  firstCharacters,
  type Ids,
  type Json,
  type Transaction,
} from "../../../core/index.ts"
import type { Audit } from "./audit.ts"

export interface AuditTables {
  readonly accounts_audit: {
    readonly id: string
    readonly seq: Generated<bigint>
    readonly actor: string
    readonly action: string
    readonly target: string
    readonly before: ColumnType<Json, string | null>
    readonly after: ColumnType<Json, string | null>
    readonly created_at: Date
  }
}

const maxCharacters = 400

/** Targets of attempts may be any text: PostgreSQL refuses NUL, and long texts are cut. */
const plainText = (text: string): string =>
  firstCharacters(text.replaceAll("\0", "\ufffd"), maxCharacters)

const jsonText = (value: Json): string | null => JSON.stringify(value) ?? null

export const makeAudit = (database: Database, clock: Clock, ids: Ids): Audit => ({
  record: ({ actor, action, target, before, after }, tx?: Transaction) =>
    Effect.asVoid(
      database.run(() =>
        database
          .queries<AuditTables>(tx)
          .insertInto("accounts_audit")
          .values({
            id: ids.make("audit_"),
            actor: plainText(actor),
            action: plainText(action),
            target: plainText(target),
            before: jsonText(before),
            after: jsonText(after),
            created_at: new Date(clock.nowMs()),
          })
          .execute(),
      ),
    ),
})
