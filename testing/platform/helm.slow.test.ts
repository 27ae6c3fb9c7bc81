import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { lint, type Manifest, noHelm, render } from "../helm.ts"
import { runCli } from "../platform.ts"

const root = join(import.meta.dirname, "../..")
const read = (path: string) => readFileSync(join(root, path), "utf8")

const one = (manifests: Manifest[], kind: string, name: string): Manifest => {
  const found = manifests.filter((item) => item.kind === kind && item.metadata.name === name)
  expect([kind, name, found.length]).toEqual([kind, name, 1])
  return found[0]!
}
const roles = ["api", "worker"] as const

/** Selectors find their pods, mounts their volumes, ports their names: what the API can't see. */
const expectConnected = (manifests: Manifest[]) => {
  const keys = manifests.map(({ kind, metadata }) => `${kind}/${metadata.name}`)
  expect(new Set(keys).size).toBe(keys.length)
  const pods = manifests.filter(({ kind }) => kind === "Deployment").map((d) => d.spec.template)
  const matching = (labels: object) =>
    pods.filter(({ metadata }) =>
      Object.entries(labels).every(([key, value]) => metadata.labels[key] === value),
    )
  for (const manifest of manifests) {
    const { spec } = manifest
    if (manifest.kind === "Service") expect(matching(spec.selector)).toHaveLength(1)
    if (manifest.kind === "Deployment" || manifest.kind === "PodDisruptionBudget")
      expect(matching(spec.selector.matchLabels)).toHaveLength(1)
    if (spec?.scaleTargetRef) one(manifests, "Deployment", spec.scaleTargetRef.name)
    for (const rule of spec?.rules ?? [])
      for (const { backend } of rule.http.paths) one(manifests, "Service", backend.service.name)
  }
  for (const { spec } of pods)
    for (const container of spec.containers) {
      const names = spec.volumes.map(({ name }: { name: string }) => name)
      for (const { name } of container.volumeMounts) expect(names).toContain(name)
      expect(container.ports).toEqual([{ name: "http", containerPort: 8080 }])
    }
}

describe.skipIf(noHelm())("the Helm chart", () => {
  it("passes helm lint, and hangs together with each option", () => {
    expect(lint()).toContain("0 chart(s) failed")
    const options = [
      [],
      ["keda.enabled=true"],
      ["ingress.enabled=false"],
      ["migration.enabled=true"],
      ["env.S3_ENDPOINT=", "env.S3_FORCE_PATH_STYLE=false", "env.S3_REGION=ap-southeast-3"],
      ["worker.enabled=false"],
      ["secretName=other", "image.repository=registry.example.com/rakit", "image.tag=1.2.3"],
    ]
    for (const values of options) expectConnected(render(...values))
  })

  it("has probes, a budget of disruption and pods that may write to their volumes only", () => {
    const manifests = render()
    for (const role of roles) {
      const { spec } = one(manifests, "Deployment", `rakit-${role}`)
      expect(spec.strategy.rollingUpdate).toEqual({ maxUnavailable: 0, maxSurge: 1 })
      const pod = spec.template.spec
      expect(pod.securityContext).toMatchObject({
        runAsNonRoot: true,
        runAsUser: 10001,
        seccompProfile: { type: "RuntimeDefault" },
      })
      const [container] = pod.containers
      expect(container.args).toEqual(["serve", "config/production.yaml", "--role", role])
      expect(container.securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ["ALL"] },
      })
      const paths = ["startupProbe", "livenessProbe", "readinessProbe"].map(
        (name) => container[name].httpGet.path,
      )
      expect(paths).toEqual(["/healthz", "/healthz", "/readyz"])
      expect(container.resources.limits.memory).toBe("2Gi")
      expect(one(manifests, "PodDisruptionBudget", `rakit-${role}`).spec.maxUnavailable).toBe(1)
    }
    // the image's user and folders are the chart's
    const dockerfile = read("deploy/Dockerfile")
    expect(dockerfile).toContain("USER 10001:10001")
    expect(dockerfile).toContain('VOLUME ["/data", "/models"]')
  })

  it("scales the workers on metrics that exist, by KEDA, and without it on their CPU", () => {
    const plain = render()
    expect(one(plain, "HorizontalPodAutoscaler", "rakit-worker").spec.minReplicas).toBe(1)
    expect(plain.filter(({ kind }) => kind === "ScaledObject")).toEqual([])
    const keda = render("keda.enabled=true", "keda.jobsPerWorker=7")
    expect(
      keda.filter(
        ({ kind, metadata }) =>
          kind === "HorizontalPodAutoscaler" && metadata.name === "rakit-worker",
      ),
    ).toEqual([])
    const { triggers } = one(keda, "ScaledObject", "rakit-worker").spec
    const metrics = read("docs/metrics.md")
    const queries = triggers.map(({ metadata }: Manifest) => metadata.query as string)
    const named = queries.flatMap((query: string) => query.match(/rakit_\w+/g) ?? [])
    expect(named).toEqual(["rakit_queue_depth", "rakit_batch_lines_waiting"])
    for (const name of named) expect(metrics).toContain(`| \`${name}\` | gauge |`)
    // Prometheus renames the metric's own label `job` unless honor_labels is set
    expect(queries[0]).toContain("by (job, exported_job)")
    expect(triggers.map(({ metadata }: Manifest) => metadata.threshold)).toEqual(["7", "500"])
  })

  it("one Deployment does both where workers are not separate", () => {
    const manifests = render("worker.enabled=false")
    expect(manifests.filter(({ kind }) => kind === "Deployment")).toHaveLength(1)
    const { spec } = one(manifests, "Deployment", "rakit-api")
    expect(spec.template.spec.containers[0].args).toContain("all")
  })

  it("migrates before an upgrade where asked to, as the pods would", () => {
    expect(render().filter(({ kind }) => kind === "Job")).toEqual([])
    const job = one(render("migration.enabled=true"), "Job", "rakit-migrate")
    expect(job.metadata.annotations["helm.sh/hook"]).toBe("pre-upgrade")
    const [container] = job.spec.template.spec.containers
    expect(container.args).toEqual(["migrate", "config/production.yaml"])
    expect(container.securityContext.readOnlyRootFilesystem).toBe(true)
  })

  it("sets all that config/production.yaml needs", async () => {
    const { data } = one(render(), "ConfigMap", "rakit")
    for (const value of Object.values(data)) expect(typeof value).toBe("string")
    const file = join(root, "config/production.yaml")
    const secret = {
      DATABASE_URL: "postgres://u:p@127.0.0.1/r",
      RAKIT_SECRET_KEY: "a-key-of-more-than-thirty-two-characters",
      S3_ACCESS_KEY_ID: "a",
      S3_SECRET_ACCESS_KEY: "b",
    }
    const done = await runCli(["check", file], { ...data, ...secret })
    expect(done).toMatchObject({ code: 0 })
  }, 60_000)
})
