import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { Config } from '../config.ts'
import type { GivenProof } from '../core/freshness/require-fresh.ts'
import { limitKeyOf } from './client.ts'
import { Field } from './shapes.ts'

/** Fields of a body that adds or removes a way in or a factor; clients that have no parameters for them sign in again. */
export const proofFields = { current_password: Type.Optional(Field), nonce: Type.Optional(Field) }

/** Body of such a request that has nothing else to say, and may be left out. */
export const ProofBody = Type.Union([Type.Object(proofFields), Type.Null()])

/** What a request gives to show that its caller is the owner. */
export const givenProof = (
  request: FastifyRequest,
  config: Pick<Config, 'limits' | 'server'>,
  body: { current_password?: string; nonce?: string } | null | undefined,
): GivenProof => ({
  currentPassword: body?.current_password,
  nonce: body?.nonce,
  clientAddress: limitKeyOf(request, config),
})
