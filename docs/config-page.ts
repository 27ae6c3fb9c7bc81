import { readFileSync } from "node:fs"
import { join } from "node:path"
import type { Json } from "../core/json.ts"
import {
  allConfigKeys,
  block,
  type ConfigKey,
  configKeys,
  exampleOf,
  keysTable,
  plain,
  readSchema,
  root,
  type SchemaNode,
} from "./config-keys.ts"
import { optionsText } from "./options-text.ts"

/** The settings of a plugin, each with its example. */
export const pluginExample = (name: string, schema = readSchema()): Json => {
  const settings = schema.properties!.plugins!.properties![name]!
  return settings.properties ? exampleOf(settings, `plugins.${name}`, schema) : {}
}

const pluginSection = (name: string, node: SchemaNode, schema: SchemaNode): string => {
  const keys = configKeys(node, `plugins.${name}`, schema)
  return `### ${name}

${node.description} [More](../plugins/${name}/README.md).

${keys.length === 0 ? "It has no settings." : keysTable(keys, `plugins.${name}.`, schema)}

${block({ plugins: { [name]: pluginExample(name, schema) } })}
`
}

/** The whole file with an example of every key that is not a plugin's. */
export const fileExample = (schema = readSchema()): Record<string, Json> => {
  const { plugins: _, models, ...rest } = schema.properties!
  return {
    ...(exampleOf({ properties: rest }, "", schema) as Record<string, Json>),
    plugins: { "backend-onnx": {} },
    models: exampleOf(models!, "models", schema),
  }
}

const sourceForms = (): string => {
  const readme = readFileSync(join(root, "runtime/services/model-files/README.md"), "utf8")
  return readme.slice(readme.indexOf("| url"), readme.indexOf("\n\n", readme.indexOf("| url")))
}

const sourcesText = `A source is where the files of a model come from; the sources of a model are tried in order.

SOURCE_FORMS

\`./models/x.gguf\`, \`../x.gguf\` and \`/models/x.gguf\` are \`file:\`, too. A relative path is one from the folder of the config file. \`sha256\` is 64 hexadecimal digits in lower case;
the last column says what it is the digest of. What has none is pinned at its first download, in \`models.lock.yaml\` beside the config file
([the lock file](../runtime/services/model-files/README.md#the-lock-file)). A plugin is named by a built-in name, an npm package, or a path that begins with \`./\`, \`../\` or \`/\`.
\`\${NAME}\` and \`\${NAME:-default}\` stand for variables of the environment, wherever a value stands.`

/** docs/config-reference.md, from config/rakit.schema.json. */
export const configPage = (): string => {
  const schema = readSchema()
  const keys = allConfigKeys(schema).filter(({ path }) => !path.startsWith("plugins."))
  const isOf = (name: string) => (key: ConfigKey) =>
    key.path.startsWith(`${name}[]`) || key.path.startsWith(`${name}.`)
  const groups = Object.entries(schema.properties!)
    .filter(([name, node]) => name !== "plugins" && plain(node, schema).properties)
    .map(([name]) => name)
  const isNested = ({ path }: ConfigKey) => /[.[]/.test(path)
  const { models, include, ...rest } = fileExample(schema) as Record<string, Json>
  const plugins = Object.entries(schema.properties!.plugins!.properties!)
  return `# Config reference

Every key of the config file and of the built-in plugins' settings: type and range, default, meaning, and an example of each.
[configuration.md](configuration.md) explains the file; [config/rakit.schema.json](../config/rakit.schema.json) is the same for editors.
This page is generated from the schemas by \`npm run docs\`; a test keeps them equal.

## The file

${keysTable(
  keys.filter((key) => !isNested(key)),
  "",
  schema,
)}
| \`plugins\` | map | required | ${schema.properties!.plugins!.description} |

${groups.map((name) => `### ${name}\n\n${schema.properties![name]!.description}\n\n${keysTable(keys.filter(isOf(name)), `${name}.`, schema)}\n`).join("\n")}
### An example

${block(rest)}

## Models

Each entry of \`models\`. The keys of \`options\` are the backend's: [Options](#options).

${keysTable(keys.filter(isOf("models")), "models[].", schema)}

${block({ models: models! })}

## Options

${optionsText(schema)}

## Sources

${sourcesText.replace("SOURCE_FORMS", sourceForms())}

## Include

${schema.properties!.include!.description}

${keysTable(keys.filter(isOf("include")), "include[].", schema).replaceAll("`nclude", "`include")}

${block({ include: include! })}

## Plugins

${plugins.map(([name, node]) => pluginSection(name, node, schema)).join("\n")}`
}
