import { availableParallelism } from "node:os"
import { fileURLToPath } from "node:url"
import { defineConfig } from "vitest/config"

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url))

export default defineConfig({
  resolve: {
    alias: {
      // what a plugin outside imports by the package's name is, in tests, the source
      "rakit/core": here("core/index.ts"),
      "rakit/testing/backend": here("testing/fakes/backend.ts"),
      "rakit/testing/platform": here("testing/platform.ts"),
      "rakit/testing": here("testing/index.ts"),
      "@node-rs/argon2": here("testing/argon2.ts"),
    },
  },
  test: {
    include: ["{core,plugins,runtime,testing,config,examples,bench,docs}/**/*.test.ts"],
    globalSetup: ["testing/global-setup.ts"],
    // files share a process, and one that loads onnxruntime-node itself would leave those after it
    // without the native kernels
    setupFiles: ["plugins/backend-onnx/kernels/addon.ts"],
    pool: "forks",
    // V8's 16 MB are full of what tests hold at once: an eighth of the time was collections
    execArgv: ["--max-semi-space-size=64"],
    // loading effect anew for each of a hundred files took half of the time; no test leaves
    // state in a module
    isolate: false,
    // tests start servers and threads of models, too
    maxWorkers: Math.max(2, Math.floor(availableParallelism() / 2)),
    // half of the work of the runner itself, from the second run on; a changed file is another
    // entry
    experimental: { fsModuleCache: true },
    testTimeout: 20_000,
    hookTimeout: 60_000,
  },
})
