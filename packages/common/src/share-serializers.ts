import serializerSelector from '@fastify/fast-json-stringify-compiler'
import type { FastifyInstance, FastifySchemaCompiler } from 'fastify'

/**
 * Compiles each answer's schema once, however many routes have it: every route documents the same errors, and a function
 * for each of those cost an idle service megabytes. Call before routes are registered.
 */
export function shareSerializers(app: FastifyInstance): void {
  const compile = serializerSelector()({}, app.initialConfig as object)
  const compiled = new Map<string, ReturnType<typeof compile>>()
  app.setSerializerCompiler(((route) => {
    const key = JSON.stringify(route.schema)
    const known = compiled.get(key)
    if (known) return known
    const serialize = compile(route as Parameters<typeof compile>[0])
    compiled.set(key, serialize)
    return serialize
  }) as FastifySchemaCompiler<unknown> as Parameters<FastifyInstance['setSerializerCompiler']>[0])
}
