import { type SpawnOptions, spawn } from "node:child_process"
import { readFileSync } from "node:fs"

/** The user that PostgreSQL runs as, since it refuses root. */
export interface RunAs {
  readonly about: string
  /** The owner that the data folder needs, as this process sees it. */
  readonly uid: number | undefined
  readonly gid: number | undefined
  command(
    program: string,
    args: readonly string[],
  ): { readonly file: string; readonly args: readonly string[]; readonly options: SpawnOptions }
}

const nobody = 65534

/** initdb looks its user up by uid, so the uid must be known to the system. */
const knownUid = (): number => {
  try {
    const uids = readFileSync("/etc/passwd", "utf8")
      .split("\n")
      .map((line) => Number(line.split(":")[2]))
      .filter((uid) => uid > 0)
    return uids.includes(nobody) ? nobody : (uids[0] ?? nobody)
  } catch {
    return nobody
  }
}

const ourselves = (): RunAs => ({
  about: "this process's user",
  uid: process.getuid?.(),
  gid: process.getgid?.(),
  command: (file, args) => ({ file, args, options: {} }),
})

/**
 * Maps another uid inside, and keeps the access of this user: data and programs may be in a private
 * home. `unshare` execs, so the pid stays.
 */
const inUserNamespace = (): RunAs => ({
  about: "a user namespace (unshare)",
  uid: process.getuid?.(),
  gid: process.getgid?.(),
  command: (program, args) => {
    const uid = knownUid()
    return {
      file: "unshare",
      args: ["--user", `--map-user=${uid}`, `--map-group=${uid}`, program, ...args],
      options: {},
    }
  },
})

const as = (about: string, uid: number, gid: number): RunAs => ({
  about,
  uid,
  gid,
  command: (file, args) => ({ file, args, options: { uid, gid } }),
})

/** Returns the users to try, in order. `owner` is the owner of an existing data folder. */
export const candidates = (
  owner: { readonly uid: number; readonly gid: number } | undefined,
): readonly RunAs[] => {
  const isRoot = process.getuid?.() === 0
  // initdb refuses a user without a name on this system, where the namespace helps, too
  if (!isRoot)
    return process.platform === "linux" ? [ourselves(), inUserNamespace()] : [ourselves()]
  const rootsOwn = [inUserNamespace(), as("the user nobody", nobody, nobody)]
  return owner === undefined || owner.uid === 0
    ? rootsOwn
    : [as(`the owner of the data, user ${owner.uid}`, owner.uid, owner.gid), ...rootsOwn]
}

/**
 * The environment of the server: without settings of Rakit (such as DATABASE_URL) and without PG*
 * variables, which would change what it does.
 */
export const environment = (): NodeJS.ProcessEnv => {
  const kept = ["PATH", "SystemRoot", "TEMP", "TMPDIR"].flatMap((name) =>
    process.env[name] === undefined ? [] : [[name, process.env[name]]],
  )
  return { ...Object.fromEntries(kept), LC_ALL: "C", TZ: "UTC" }
}

/**
 * Runs a program to its end. Never rejects; `code` is undefined when it could not start or timed
 * out.
 */
export const runToEnd = (
  runAs: RunAs,
  program: string,
  args: readonly string[],
  limitMs: number,
): Promise<{ readonly code: number | undefined; readonly output: string }> =>
  new Promise((resolve) => {
    const { file, args: all, options } = runAs.command(program, args)
    const child = spawn(file, all, {
      ...options,
      env: environment(),
      cwd: "/",
      stdio: ["ignore", "pipe", "pipe"],
      timeout: limitMs,
      killSignal: "SIGKILL",
    })
    let output = ""
    const collect = (chunk: Buffer) => {
      output = (output + chunk).slice(-4_000)
    }
    child.stdout?.on("data", collect)
    child.stderr?.on("data", collect)
    child.once("error", (error) => resolve({ code: undefined, output: error.message }))
    child.once("close", (code) => resolve({ code: code ?? undefined, output }))
  })
