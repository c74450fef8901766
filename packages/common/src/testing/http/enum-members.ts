// Members of requests with a fixed set of values, as the document of a service lists them.
import { dereferenced } from './dereferenced.ts'

interface Schema {
  enum?: unknown[]
  const?: unknown
  anyOf?: Schema[]
  items?: Schema
  properties?: Record<string, Schema>
}

interface Operation {
  parameters?: { in: string; name: string; schema: Schema }[]
  requestBody?: { content: Record<string, { schema: Schema; example?: Record<string, unknown> }> }
}

interface Document {
  paths: Record<string, Record<string, Operation>>
}

export interface EnumMember {
  /** Method, path, place and field: `POST /tokens body scopes`. */
  name: string
  method: string
  /** Address with a value that is not one of the set, and the ids of `given`. */
  url: string
  values: string[]
  /** JSON body, with such a value if it has the member. */
  body: object | undefined
}

/** Values that a request needs before it reaches the member. */
export interface Given {
  query?: Record<string, string>
  body?: object
  /** Instead of other ids in the path. */
  id?: string
}

const NO_CHOICE = 'no-choice'

/** Members of paths, queries and JSON bodies; bodies are the examples of their operations and `given`. */
export function enumMembers(document: Document, given: Record<string, Given>, id: string): EnumMember[] {
  return Object.entries(dereferenced(document).paths).flatMap(([path, operations]) =>
    Object.entries(operations).flatMap(([verb, { parameters = [], requestBody }]) => {
      const method = verb.toUpperCase()
      // It has no body to say anything.
      if (method === 'HEAD') return []
      const { schema, example = {} } = requestBody?.content['application/json'] ?? {}
      const places = [
        ...parameters.map(({ in: place, name: field, schema: own }) => ({ place, field, own })),
        ...Object.entries(schema?.properties ?? {}).map(([field, own]) => ({ place: 'body', field, own })),
      ]
      return places.flatMap(({ place, field, own }) => {
        const values = valuesOf(own)
        const name = `${method} ${path} ${place} ${field}`
        if (values.length === 0 || place === 'header') return []
        const { query, body, id: ownId = id } = given[name] ?? {}
        const search = new URLSearchParams({ ...query, ...(place === 'query' && { [field]: NO_CHOICE }) })
        const filled = path.replaceAll(/\{(\w+)\}/g, (_, part) => (part === field ? NO_CHOICE : ownId))
        const wrong = place === 'body' && { [field]: own.items ? [NO_CHOICE] : NO_CHOICE }
        const url = search.size > 0 ? `${filled}?${search}` : filled
        return [{ name, method, url, values, body: schema && { ...example, ...body, ...wrong } }]
      })
    }),
  )
}

const valuesOf = (schema: Schema): string[] =>
  [
    ...(schema.enum ?? (schema.const === undefined ? [] : [schema.const])),
    ...(schema.anyOf ?? []).flatMap(valuesOf),
    ...(schema.items ? valuesOf(schema.items) : []),
  ].map(String)
