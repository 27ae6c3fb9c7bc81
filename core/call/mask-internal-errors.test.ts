import { Effect, Stream } from "effect"
import { expect, it } from "vitest"
import { fakeLog } from "../../testing/fakes/log.ts"
import { apiError, PortError } from "../errors.ts"
import { freePlan, type PlanError, type Reply } from "../ports/endpoint.ts"
import { BlobMissing, BlobTooLarge, StorageFull } from "../ports/storage.ts"
import { runPlan } from "./mask-internal-errors.ts"

const failures: readonly (readonly [PlanError, string, string | undefined])[] = [
  [apiError("conflict"), "conflict", undefined],
  [new PortError({ port: "database", message: "down" }), "internal_error", "port.failed"],
  [new PortError({ port: "database", message: "full", why: "busy" }), "server_busy", undefined],
  [
    new PortError({ port: "database", message: "refused", why: "unavailable" }),
    "database_unavailable",
    "port.failed",
  ],
  [
    new PortError({ port: "storage", message: "no bucket", why: "unavailable" }),
    "storage_unavailable",
    "port.failed",
  ],
  [
    new PortError({ port: "database", message: "no space", why: "full" }),
    "storage_full",
    "port.failed",
  ],
  [new BlobMissing({ key: "k" }), "internal_error", "port.failed"],
  [new BlobTooLarge({ key: "k", maxBytes: 1 }), "payload_too_large", undefined],
  [new StorageFull({ key: "k" }), "storage_full", "storage.full"],
]

it.each(failures)(
  "a plan that fails with %s: clients see %s, the log %s",
  async (failure, code, event) => {
    const bytes = Stream.fail(failure)
    const slice = () => bytes
    const reply: Reply<PlanError> = {
      status: 200,
      mediaType: "a/b",
      bytes,
      ranged: { totalBytes: 1, slice },
    }
    const inTheReply = (log = fakeLog()) =>
      Effect.flatMap(runPlan(log, freePlan(Effect.succeed(reply))), (masked) =>
        "bytes" in masked
          ? Effect.all([
              Effect.flip(Stream.runDrain(masked.bytes)),
              Effect.flip(Stream.runDrain(masked.ranged!.slice(0, 0))),
            ])
          : Effect.die("no bytes"),
      )
    const log = fakeLog()
    const before = Effect.flip(runPlan(log, freePlan(Effect.fail(failure))))
    const seen = Effect.scoped(Effect.all([before, inTheReply()]))
    const [first, later] = await Effect.runPromise(seen)
    expect([first, ...later].map((error) => error.code)).toEqual([code, code, code])
    expect(log.lines.map((line) => line.event)).toEqual(event === undefined ? [] : [event])
  },
)
