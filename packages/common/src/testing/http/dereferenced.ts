/** Replaces the references of an OpenAPI document by their targets; ours has no recursive schema. */
export function dereferenced<Document>(document: Document): Document {
  const inPlace = (node: unknown): unknown => {
    if (Array.isArray(node)) return node.map(inPlace)
    if (typeof node !== 'object' || node === null) return node
    const { $ref } = node as { $ref?: unknown }
    if (typeof $ref === 'string') return inPlace(find(document, $ref))
    return Object.fromEntries(Object.entries(node).map(([name, value]) => [name, inPlace(value)]))
  }
  return inPlace(document) as Document
}

const find = (document: unknown, ref: string) =>
  ref
    .split('/')
    .slice(1)
    .reduce((node, name) => (node as Record<string, unknown>)[name], document)
