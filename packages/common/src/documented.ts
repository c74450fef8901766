// Additions of a route to the OpenAPI document alone. The one rule: `schema` decides what is accepted and how it is
// answered, and nothing here changes that. How the document is made of it: api-document.ts.
import type {} from 'fastify'

declare module 'fastify' {
  interface FastifySchema {
    /** Request headers the operation reads, by their names in `ApiDocs.requestHeaders`. */
    requestHeaders?: readonly string[]
  }
}

/** Keyword of a schema that validators must know of (`ajv.customOptions.keywords`) and ignore. */
export const DOCUMENTED = 'x-documented'

/**
 * Members that a schema has in the document instead of the validator's: a choice that the handler checks, with a text of
 * its own; a number that arrives as text. `required` is about the member of an object, or the body.
 */
export const inDocument = (members: { required?: boolean; [keyword: string]: unknown }) => ({ [DOCUMENTED]: members })

/** An answer with these headers, by their names in `ApiDocs.answerHeaders`. */
export const withHeaders = <Shape extends object>(shape: Shape, ...names: string[]): Shape => ({
  ...shape,
  headers: Object.fromEntries(names.map((name) => [name, {}])),
})
