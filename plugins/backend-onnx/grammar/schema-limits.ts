/** What a schema may weigh, as JSON: what it takes to compile grows with it. */
export const mostSchemaBytes = 512 * 1024
