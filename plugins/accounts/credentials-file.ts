import { mkdir, open, readFile, rename, rm } from "node:fs/promises"
import { dirname, join } from "node:path"
import { Effect, Schema } from "effect"
import { PluginError, randomText } from "../../core/index.ts"

/** `<dataDir>/credentials.json`, for the operator. */
export const Credentials = Schema.Struct({
  base_url: Schema.String,
  email: Schema.String,
  password: Schema.String,
  api_key: Schema.String,
})
export type Credentials = typeof Credentials.Type

export interface CredentialsFile {
  readonly path: string
  /** Undefined when there is no such file, or it can't be parsed. */
  readonly read: Effect.Effect<Credentials | undefined>
  /** Atomic, with mode 0600: readers see either the old file or the whole new one. */
  write(credentials: Credentials): Effect.Effect<void, PluginError>
}

const replaceFile = async (path: string, text: string) => {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  const draft = `${path}.${randomText(8)}.tmp`
  try {
    const file = await open(draft, "wx", 0o600)
    try {
      await file.writeFile(text)
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(draft, path)
  } catch (cause) {
    await rm(draft, { force: true })
    throw cause
  }
}

const decode = Schema.decodeUnknownSync(Schema.fromJsonString(Credentials))

export const credentialsFile = (dataDir: string): CredentialsFile => {
  const path = join(dataDir, "credentials.json")
  return {
    path,
    read: Effect.tryPromise(async () => decode(await readFile(path, "utf8"))).pipe(
      Effect.catch(() => Effect.succeed(undefined)),
    ),
    write: (credentials) =>
      // not interruptible, so that no draft is left behind
      Effect.tryPromise({
        try: () => replaceFile(path, `${JSON.stringify(credentials, undefined, 2)}\n`),
        catch: (cause) =>
          new PluginError({
            plugin: "accounts",
            message: `${path} can't be written (${(cause as NodeJS.ErrnoException).code ?? "unknown error"}). Make its folder writable, or set RAKIT_DATA to another.`,
            cause,
          }),
      }).pipe(Effect.uninterruptible),
  }
}
