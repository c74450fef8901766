import type { FastifyRequest } from 'fastify'
import { expect, test } from 'vitest'
import { valuesOf } from './cookies.ts'

test.for([
  ['__Host-auth-page', 1],
  ['auth-page', 4],
] as const)('of many cookies %s, which are forged, as many as %i are read', ([name, count]) => {
  const cookie = Array.from({ length: 900 }, (_, index) => `other=1; ${name}=${index}`).join('; ')
  const values = valuesOf({ headers: { cookie } } as FastifyRequest, name)
  expect(values).toEqual(['0', '1', '2', '3'].slice(0, count))
})
