// a thread whose entry is TypeScript needs the loader before it
const { register } = await import("tsx/esm/api")
register()
await import("./thread.ts")
