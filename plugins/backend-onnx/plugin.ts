// Of the whole process, and first: whatever thread loads onnxruntime-node before the native kernels
// (another plugin's, too) leaves all threads without them.
import "./kernels/addon.ts"
import { definePlugin } from "../../core/plugin.ts"
import { provide, resolve, resolveAll, Tokens } from "../../core/tokens.ts"
import { makeOnnxBackend } from "./backend.ts"
import { makeOpenVocabularies, makeSchemaChecker } from "./grammar/schema-checker.ts"
import { entryOptions } from "./options.ts"
import { OnnxSettings } from "./settings.ts"
import { makeEngineHealth } from "./worker/health.ts"

export const plugin = definePlugin<OnnxSettings>({
  name: "backend-onnx",
  api: 1,
  about:
    "Runs chat, embedding, rerank and image models with ONNX Runtime, from GGUF and safetensors files.",
  settings: OnnxSettings,
  // a provider runs the same models, so it has the same options
  modelOptions: { onnx: entryOptions, webgpu: entryOptions },
  needs: [Tokens.deployment, Tokens.workers, Tokens.clock, Tokens.log],
  optional: [Tokens.executionProviders],
  provides: [Tokens.backends, Tokens.healthChecks, Tokens.schemaChecker],
  create: (settings) => ({
    register: (container) => {
      const services = () => ({
        dataDir: resolve(container, Tokens.deployment).dataDir,
        workers: resolve(container, Tokens.workers),
        clock: resolve(container, Tokens.clock),
        log: resolve(container, Tokens.log),
      })
      const health = makeEngineHealth()
      const vocabularies = makeOpenVocabularies()
      const deps = { settings, health, vocabularies, services }
      provide(container, Tokens.backends, makeOnnxBackend(deps))
      // plugins that bring providers have registered before this one
      for (const provider of resolveAll(container, Tokens.executionProviders))
        provide(container, Tokens.backends, makeOnnxBackend({ ...deps, provider }))
      provide(container, Tokens.healthChecks, health.check)
      provide(container, Tokens.schemaChecker, makeSchemaChecker(services, vocabularies))
    },
  }),
})
