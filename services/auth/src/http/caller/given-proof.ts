import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { Config } from '../../config.ts'
import type { GivenProof } from '../../core/freshness/require-fresh.ts'
import { Field } from '../bodies/shapes.ts'
import { limitKeyOf } from '../limits/client.ts'

/** Fields of a change of sign-in methods or factors; clients without them let the user sign in again. */
export const proofFields = { current_password: Type.Optional(Field), nonce: Type.Optional(Field) }

/** Optional body of such a request with no other field. */
export const ProofBody = Type.Union([Type.Object(proofFields), Type.Null()])

export const givenProof = (
  request: FastifyRequest,
  config: Pick<Config, 'limits' | 'server'>,
  body: { current_password?: string; nonce?: string } | null | undefined,
): GivenProof => ({
  currentPassword: body?.current_password,
  nonce: body?.nonce,
  clientAddress: limitKeyOf(request, config),
})
