import { Effect, type Scope } from "effect"
import { type Loop, type PlanError, repeatInTurn } from "../../../core/index.ts"
import { deleteDueBlobs } from "../blobs/deletion-queue.ts"
import type { FilesDeps } from "../deps.ts"
import { expireUploads } from "../uploads/close-upload.ts"
import { abandonLapsed, expireFiles, forgetOld } from "./expire.ts"
import { scheduleOrphans } from "./orphans.ts"
import { showUnobserved } from "./unobserved.ts"

const minuteMs = 60_000
const hourMs = 60 * minuteMs

interface Sweep extends Loop {
  readonly done: string
  /** Returns the number of swept things. */
  readonly work: Effect.Effect<number, PlanError>
}

export const sweepsOf = (deps: FilesDeps): readonly Sweep[] => [
  {
    event: "file.orphan_sweep_failed",
    message: "orphan blobs found: failed",
    everyMs: hourMs,
    done: "orphan blobs found",
    work: scheduleOrphans(deps),
  },
  {
    event: "file.forget_failed",
    message: "old rows forgotten: failed",
    everyMs: hourMs,
    done: "old rows forgotten",
    work: forgetOld(deps),
  },
  {
    event: "upload.abandon_failed",
    message: "unfinished uploads given up: failed",
    everyMs: minuteMs,
    done: "unfinished uploads given up",
    work: abandonLapsed(deps),
  },
  {
    event: "upload.expiry_failed",
    message: "uploads expired: failed",
    everyMs: minuteMs,
    done: "uploads expired",
    work: expireUploads(deps),
  },
  {
    event: "file.expiry_failed",
    message: "files expired: failed",
    everyMs: minuteMs,
    // plugins that observe files start after this one
    isDelayed: true,
    done: "files expired",
    work: expireFiles(deps),
  },
  {
    event: "file.observation_failed",
    message: "older files shown to observers: failed",
    everyMs: minuteMs,
    isDelayed: true,
    done: "older files shown to observers",
    work: showUnobserved(deps),
  },
  {
    event: "file.deletion_failed",
    message: "deleted blobs removed: failed",
    everyMs: 4_000,
    done: "deleted blobs removed",
    work: deleteDueBlobs(deps),
  },
]

/**
 * Every server sweeps; concurrent sweeps are safe. Deleted bytes are gone within two turns also
 * when the server that deleted them died.
 */
export const keepSwept = (deps: FilesDeps): Effect.Effect<void, never, Scope.Scope> =>
  repeatInTurn(
    deps.log,
    sweepsOf(deps).map((sweep) => [
      sweep,
      Effect.map(sweep.work, (count) => {
        if (count > 0) deps.log.info("file.swept", sweep.done, { count })
      }),
    ]),
  )
