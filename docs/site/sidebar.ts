import { pages } from "./pages.ts"

interface Item {
  readonly text: string
  readonly link: string
}

const item = (text: string, page: string): Item => ({ text, link: `/${page}` })

const below = (folder: string): readonly Item[] =>
  [...pages.values()]
    .filter((page) => page.startsWith(`${folder}/`))
    .map((page) => page.replace(/\.md$/, ""))
    .sort()
    .map((page) => item(page.slice(folder.length + 1), page))

/** The guide's table of contents. Every page stands in it once. */
export const sidebar = [
  {
    text: "Start",
    items: [
      item("Quickstart", "quickstart"),
      item("Concepts", "concepts"),
      item("Configuration", "configuration"),
      item("Config reference", "config-reference"),
      item("Troubleshooting", "troubleshooting"),
    ],
  },
  {
    text: "Use",
    items: [
      item("The dashboard in pictures", "dashboard"),
      item("API guide", "api-guide"),
      item("Error codes", "errors"),
      item("Images, sounds and videos", "media"),
      item("Pictures", "images"),
      item("Batches", "batches"),
      item("Search in documents", "knowledge"),
      item("Structured output", "structured-output"),
      item("The schema in the prompt", "schema-in-prompt"),
      item("Retrieval, measured", "retrieval"),
    ],
  },
  {
    text: "Models",
    items: [
      item("Which model for what", "models-guide"),
      item("Ready-made models", "models"),
      item("Sources of models", "sources"),
      item("Model files", "model-files"),
      item("The chat engine", "engine"),
      item("WebGPU", "webgpu"),
    ],
  },
  {
    text: "Operate",
    items: [
      item("Deployment", "deployment"),
      item("Top-ups", "top-ups"),
      item("Many servers", "many-servers"),
      item("Security model", "security"),
      item("Backup and upgrade", "backup"),
      item("Observability", "metrics"),
      item("Events of the log", "events"),
      item("How it grows", "scale"),
      item("Benchmarks", "benchmarks"),
    ],
  },
  {
    text: "Extend",
    items: [
      item("Plugin authors' guide", "plugin-authors"),
      item("Architecture", "architecture"),
      item("Decisions", "decisions"),
      item("Changelog", "changelog"),
    ],
  },
  { text: "Plugins", collapsed: true, items: below("plugins") },
  { text: "Examples", collapsed: true, items: below("examples") },
]
