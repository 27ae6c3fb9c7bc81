// the process of a device loads TypeScript only after the loader
const { register } = await import("tsx/esm/api")
register()
export const { startOnDevice } = await import("./entry.ts")
