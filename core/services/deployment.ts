/** What a plugin may know about its deployment. */
export interface Deployment {
  readonly name: string
  /** Absolute; private to this deployment. */
  readonly dataDir: string
  /** Absolute; model files, may be shared by deployments. */
  readonly modelsDir: string
  /** `publicUrl` of the config, or `http://host:port`; without a slash at the end. */
  readonly baseUrl: string
  /** `server` owns what it starts; `command` is a short CLI call beside a running server. */
  readonly mode: "server" | "command"
  /** What a server does: answer clients, work through jobs, or both. */
  readonly role?: Role
  /** Whether all plugins have started; only a server has it. */
  readonly hasStarted?: boolean
}

export type Role = "api" | "worker" | "all"
