import { inDocument } from '@services/common/documented'
import { Type } from 'typebox'
import type { FactorJson } from '../../db/tables.ts'

const Timestamp = Type.String({ format: 'date-time' })

/** A second factor as the user and admins see it, without secrets. */
export const FactorShape = Type.Object(
  {
    id: Type.String({ format: 'uuid' }),
    created_at: Timestamp,
    updated_at: Timestamp,
    status: Type.String({
      description: '`verified` after the first proof.',
      ...inDocument({ enum: ['unverified', 'verified'] }),
    }),
    friendly_name: Type.Optional(Type.String()),
    factor_type: Type.String(inDocument({ enum: ['totp', 'phone', 'webauthn', 'recovery_code'] })),
    phone: Type.Optional(Type.String({ description: 'E.164 number with the leading +.' })),
    last_challenged_at: Type.Optional(Timestamp),
    web_authn_aaguid: Type.Optional(Type.String({ description: 'Model of a security key.' })),
  },
  { title: 'Factor' },
)

export type FactorBody = Type.Static<typeof FactorShape>

export const toFactorBody = (factor: FactorJson): FactorBody => ({
  id: factor.id,
  created_at: new Date(factor.created_at).toISOString(),
  updated_at: new Date(factor.updated_at).toISOString(),
  status: factor.status,
  friendly_name: factor.friendly_name || undefined,
  factor_type: factor.factor_type,
  phone: factor.phone === null ? undefined : `+${factor.phone}`,
  last_challenged_at: factor.last_challenged_at ? new Date(factor.last_challenged_at).toISOString() : undefined,
  web_authn_aaguid: factor.aaguid ?? undefined,
})
