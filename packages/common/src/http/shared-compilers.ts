import validatorSelector from '@fastify/ajv-compiler'
import serializerSelector from '@fastify/fast-json-stringify-compiler'
import type { FastifyServerOptions } from 'fastify'

/** Fastify's `schemaController` that compiles each distinct schema once: per-route copies of errors cost megabytes. */
export const sharedCompilers: FastifyServerOptions['schemaController'] = {
  compilersFactory: {
    buildValidator: compilingOnce(validatorSelector()),
    buildSerializer: compilingOnce(serializerSelector()),
  },
}

// biome-ignore lint/suspicious/noExplicitAny: Fastify's two kinds of selectors share this form alone
type Selector = (schemas: any, options?: any) => (route: any) => unknown

function compilingOnce<Select extends Selector>(select: Select): Select {
  const compiled = new Map<string, unknown>()
  const selectOnce: Selector = (schemas, options) => {
    const compile = select(schemas, options)
    const scope = JSON.stringify([schemas, options?.customOptions])
    return (route) => {
      const key = scope + JSON.stringify(route.schema)
      if (!compiled.has(key)) compiled.set(key, compile(route))
      return compiled.get(key)
    }
  }
  return selectOnce as Select
}
