import { Schema } from "effect"
import { formatRupiah, rupiahNumber } from "../../../core/index.ts"
import { csvLine, number, text } from "../csv.ts"
import type { Entry } from "../entry-rows.ts"

export const EntryReply = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("ledger_entry"),
  type: Schema.Literals(["grant", "charge", "adjustment"]),
  amount_idr: Schema.Finite.annotate({ description: "Below zero when money left the account." }),
  balance_idr: Schema.Finite.annotate({ description: "The balance after it." }),
  request_id: Schema.NullOr(Schema.String),
  call_id: Schema.NullOr(Schema.String),
  created_at: Schema.Int.annotate({ description: "Unix seconds." }),
  description: Schema.String,
}).annotate({ identifier: "LedgerEntry" })
export type EntryReply = typeof EntryReply.Type

export const EntryList = Schema.Struct({
  object: Schema.Literal("list"),
  data: Schema.Array(EntryReply),
  has_more: Schema.Boolean,
  first_id: Schema.NullOr(Schema.String),
  last_id: Schema.NullOr(Schema.String),
}).annotate({ identifier: "LedgerEntries" })

const prefix = "entry_"
const idOf = ({ id }: Entry): string => `${prefix}${id}`

/** Returns the number in the id of an entry; undefined when it is no such id. */
export const entryNumber = (id: string): bigint | undefined =>
  /^entry_[1-9]\d{0,17}$/.test(id) ? BigInt(id.slice(prefix.length)) : undefined

const describe = ({ endpoint, model, reason }: Entry): string =>
  endpoint === null ? (reason ?? "") : model === null ? endpoint : `${endpoint} with ${model}`

const secondsOf = (at: Date): number => Math.floor(at.getTime() / 1000)

export const toEntry = (entry: Entry): EntryReply => ({
  id: idOf(entry),
  object: "ledger_entry",
  type: entry.type,
  amount_idr: rupiahNumber(entry.amountMicros),
  balance_idr: rupiahNumber(entry.balanceMicros),
  request_id: entry.requestId,
  call_id: entry.callId,
  created_at: secondsOf(entry.at),
  description: describe(entry),
})

export const entryHead = csvLine(
  [
    "id",
    "created_at",
    "type",
    "amount_idr",
    "balance_idr",
    "request_id",
    "call_id",
    "description",
  ].map(text),
)

/** Times in ISO 8601, amounts as exact decimals. */
export const entryLine = (entry: Entry): string =>
  csvLine([
    text(idOf(entry)),
    text(entry.at.toISOString()),
    text(entry.type),
    number(formatRupiah(entry.amountMicros)),
    number(formatRupiah(entry.balanceMicros)),
    text(entry.requestId),
    text(entry.callId),
    text(describe(entry)),
  ])
