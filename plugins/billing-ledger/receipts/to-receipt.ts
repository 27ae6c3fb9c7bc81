import { formatRupiah, type Json } from "../../../core/index.ts"
import type { CallRecord } from "./receipt-rows.ts"

const secondsOf = (at: Date): number => Math.floor(at.getTime() / 1000)

/**
 * The payload of a receipt. Amounts are exact decimals, so that its holder can compute the cost
 * again: the price of `usage`, at most `hold_idr`.
 */
export const receiptOf = (call: CallRecord, issuer: string): Json => {
  const settledAt = secondsOf(call.settledAt ?? call.admittedAt)
  return {
    iss: issuer,
    iat: settledAt,
    jti: call.id,
    call_id: call.id,
    account: call.account,
    // calls of dashboard sessions have no key; they are stored under an id of their session
    key_id: call.keyId.startsWith("session:") ? null : call.keyId,
    request_id: call.requestId,
    endpoint: call.endpoint,
    model: call.model,
    mode: call.mode,
    status: call.state,
    http_status: call.httpStatus,
    admitted_at: secondsOf(call.admittedAt),
    settled_at: settledAt,
    usage: call.usage ?? {},
    prices: call.prices,
    hold_idr: formatRupiah(call.holdMicros),
    cost_idr: formatRupiah(call.costMicros),
    currency: "IDR",
    // by which `rakit replay` runs the call again; calls that failed have none
    ...(call.evidence !== null && { evidence: call.evidence }),
  }
}
