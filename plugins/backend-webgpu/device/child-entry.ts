/** The program of children: beside the compiled module, or one that loads the source. */
export const childEntry = new URL(
  import.meta.url.endsWith(".ts") ? "../process/main-from-source.mjs" : "../process/main.js",
  import.meta.url,
)

/** Environment of children: the loader looks at one driver only, if one is named. */
export const childEnvironment = (driver: string | undefined): NodeJS.ProcessEnv => ({
  ...process.env,
  // the older name is that of loaders before 1.3.207
  ...(driver !== undefined && { VK_DRIVER_FILES: driver, VK_ICD_FILENAMES: driver }),
})
