import { execFile } from "node:child_process"
import { createHash } from "node:crypto"
import { mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"

// A step of the build: compiles the native kernels beside the compiled plugin. Without a compiler, or
// on another platform, there are none, and models run on ONNX Runtime's own.

const run = promisify(execFile)
const compiler = process.env.CXX ?? "c++"
// it runs as dist/plugins/backend-onnx/kernels/build.js
const here = import.meta.dirname
const sources = join(here, "../../../../plugins/backend-onnx/kernels/native")
const target = join(here, "rakit-kernels.node")
const stamp = `${target}.sources`

const common = [
  ...["-std=c++17", "-O3", "-fPIC", "-fvisibility=hidden", "-fno-exceptions", "-fno-rtti"],
  // numbers must not depend on which copy of a function ran (native/lanes.h)
  "-ffp-contract=off",
]
const avx512 = ["f", "bw", "vl", "dq", "vnni"].map((part) => `-mavx512${part}`)

/** The instructions that a file may use; the others run on any processor. */
const instructions: Readonly<Record<string, readonly string[]>> = {
  "avx2.cpp": ["-mavx2", "-mfma", "-mf16c"],
  "avx512.cpp": [...avx512, "-mfma", "-mf16c"],
  "amx.cpp": [...avx512, "-mfma", "-mf16c", "-mamx-tile", "-mamx-int8"],
}

const link = ["-shared", "-static-libstdc++", "-static-libgcc", "-ldl"]

const digestOf = (): string => {
  const hash = createHash("sha256").update(JSON.stringify([compiler, common, instructions, link]))
  for (const name of readdirSync(sources).sort())
    hash.update(name).update(readFileSync(join(sources, name)))
  return hash.digest("hex")
}

const builtFrom = (): string | undefined => {
  try {
    readFileSync(target)
    return readFileSync(stamp, "utf8")
  } catch {
    return undefined
  }
}

const compile = async (folder: string): Promise<void> => {
  const files = readdirSync(sources).filter((name) => name.endsWith(".cpp"))
  const object = (name: string) => join(folder, `${name}.o`)
  const compileOne = (name: string) =>
    run(compiler, [
      ...common,
      ...(instructions[name] ?? []),
      "-c",
      join(sources, name),
      "-o",
      object(name),
    ])
  await Promise.all(files.map(compileOne))
  // renamed at last, as a server may have the old one open
  const linked = `${target}.${process.pid}`
  await run(compiler, ["-o", linked, ...files.map(object), ...link])
  renameSync(linked, target)
}

/** In one line; of a compiler's output, its first error. */
const reasonOf = (cause: unknown): string => {
  const { code, message, stderr = "" } = cause as NodeJS.ErrnoException & { stderr?: string }
  if (code === "ENOENT") return `no C++ compiler '${compiler}'`
  return /^.*\berror: .*$/m.exec(stderr)?.[0] ?? message.split("\n")[0]!
}

const build = async (): Promise<void> => {
  const digest = digestOf()
  if (builtFrom() === digest) return
  rmSync(target, { force: true })
  const folder = mkdtempSync(join(tmpdir(), "rakit-kernels-"))
  try {
    await compile(folder)
    writeFileSync(stamp, digest)
  } catch (cause) {
    console.log(
      `rakit: native kernels not built (${reasonOf(cause)}); ONNX Runtime's own run instead`,
    )
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

if (process.platform === "linux" && process.arch === "x64") await build()
