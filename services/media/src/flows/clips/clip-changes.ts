import { withoutNulls } from '@services/common/http/json-parser'
import { inDocument } from '@services/common/http/route-schema'
import { type TSchema, Type } from 'typebox'
import { type AccessChanges, type AccessRules, cleanAccess, type RawAccess } from '../../core/clips/access.ts'
import { type ClipFields, cleanFields, invalidField, MAX_TAG_TEXTS } from '../../core/clips/clip-fields.ts'
import { AccessFields, AttributionInput, orNull } from '../../http/shapes.ts'

const maybe = <Shape extends TSchema>(shape: Shape) => Type.Optional(orNull(shape))

/** Null clears a member; an absent one stays. */
export const PatchBody = Type.Object({
  title: maybe(Type.String()),
  tags: maybe(Type.Array(Type.String(), { maxItems: MAX_TAG_TEXTS })),
  nsfw: maybe(Type.Boolean()),
  attribution: maybe(AttributionInput),
  // Not null: a client that sends unset members so would publish a private clip.
  visibility: AccessFields.visibility,
  expires_in: maybe(AccessFields.expires_in),
  expires_at: maybe(AccessFields.expires_at),
  sliding: maybe(AccessFields.sliding),
  poster_at: maybe(
    Type.Union([Type.Number(), Type.String({ maxLength: 20 })], {
      description: 'Second of the clip that its poster shows; null: automatic. The picture follows soon.',
      ...inDocument({ anyOf: undefined, type: ['number', 'string'] }),
    }),
  ),
})

/** Null keeps a clip for ever. Undefined if nothing is to be changed. */
export function readAccess(body: Type.Static<typeof PatchBody>, rules: AccessRules): AccessChanges | undefined {
  const { visibility, expires_in: span, expires_at: end, sliding } = body
  const given = [visibility, span, end, sliding].some((value) => value !== undefined)
  if (!given) return undefined
  const changes: AccessChanges = {
    ...((span === null || end === null) && { lifetime: null }),
    ...(sliding === null && { sliding: false }),
    ...cleanAccess(withoutNulls({ visibility, expires_in: span, expires_at: end, sliding }) as RawAccess, rules),
  }
  if (changes.lifetime === null && !rules.hasToken) throw invalidField('expires_in', 'can only be never with a token')
  return changes
}

export function readChanges(body: Type.Static<typeof PatchBody>): Partial<ClipFields> {
  const cleaned = cleanFields(withoutNulls(body) as Parameters<typeof cleanFields>[0], 'attribution.')
  return Object.fromEntries(Object.entries(cleaned).filter(([name]) => Object.hasOwn(body, name)))
}
