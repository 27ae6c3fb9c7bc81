/** The maximum size of a schema as JSON, as the cost of compiling grows with it. */
export const mostSchemaBytes = 512 * 1024
