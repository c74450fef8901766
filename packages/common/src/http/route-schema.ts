// Additions to a route's schema that only the OpenAPI document reads (openapi-document.ts). Validation and
// serialization ignore them.
import type {} from 'fastify'

declare module 'fastify' {
  interface FastifySchema {
    /** Request headers the operation reads, by their names in `ApiDocs.requestHeaders`. */
    requestHeaders?: readonly string[]
    /** Fields of the body in the two encodings of HTML forms, beside JSON; the handler checks them. */
    formBody?: unknown
  }
}

/** Schema keyword that validators must know (`ajv.customOptions.keywords`) and ignore. */
export const DOCUMENTED = 'x-documented'

/**
 * Replaces members of a schema in the document: a choice that the handler checks itself, a number that arrives as text.
 * `required` refers to the property, or the body, that has the schema.
 */
export const inDocument = (members: { required?: boolean; [keyword: string]: unknown }) => ({ [DOCUMENTED]: members })

/** Adds headers of an answer, by their names in `ApiDocs.answerHeaders`. */
export const withHeaders = <Shape extends object>(shape: Shape, ...names: string[]): Shape => ({
  ...shape,
  headers: Object.fromEntries(names.map((name) => [name, {}])),
})
