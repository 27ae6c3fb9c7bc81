import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    include: ["{core,plugins,runtime,config,examples,bench}/**/*.test.ts"],
    globalSetup: ["runtime/testing/global-setup.ts"],
    pool: "forks",
    testTimeout: 20_000,
    hookTimeout: 60_000,
  },
})
