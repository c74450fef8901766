import { inDocument } from '@services/common/http/route-schema'
import { Type } from 'typebox'
import { MAX_DESCRIPTION } from '../../core/albums/album-fields.ts'
import { MAX_ITEMS } from '../../core/albums/shown-items.store.ts'
import { orNull, Time } from '../../http/shapes.ts'

const VisibilityField = Type.Union([Type.Literal('public'), Type.Literal('unlisted'), Type.Literal('private')], {
  description: '`unlisted` for those with the address; `private` for those with a link.',
})

export const albumMembers = {
  id: Type.String(),
  page: Type.String({ description: 'Page of the album.' }),
  oembed: Type.String({ description: 'oEmbed address.' }),
  embed: Type.String({ description: 'HTML of an iframe that shows one clip after another.' }),
  title: Type.String(),
  description: orNull(Type.String()),
  visibility: VisibilityField,
  count: Type.Integer({ description: 'Clips in any state; visitors see those that are ready.' }),
  cover: orNull(Type.String(), {
    description: 'Poster of the first clip that is ready, neither sensitive nor private; null without one.',
  }),
  etag: Type.String({ description: 'The ETag, for If-Match.' }),
  token_id: Type.String({ description: 'Token that made the album.' }),
  created_at: Time,
  updated_at: Time,
}
export const AlbumShape = Type.Object(albumMembers, { title: 'Album' })

const title = Type.String({ description: 'At most 200 characters.', ...inDocument({ minLength: 1, maxLength: 200 }) })
const description = Type.Optional(
  orNull(Type.String(), {
    description: `At most ${MAX_DESCRIPTION} characters.`,
    ...inDocument({ anyOf: undefined, type: ['string', 'null'], maxLength: MAX_DESCRIPTION }),
  }),
)

export const NewAlbumBody = Type.Object({
  title,
  description,
  visibility: Type.Optional({ ...VisibilityField, ...inDocument({ default: 'public' }) }),
})

export const AlbumChangesBody = Type.Object({
  title: Type.Optional(title),
  description,
  visibility: Type.Optional(VisibilityField),
})

/** Ids that the handler checks: too many are album_full. */
const ids = Type.Array(Type.String(), {
  description: 'Ids of clips of the same token.',
  ...inDocument({ maxItems: MAX_ITEMS, uniqueItems: true }),
})

export const ItemsBody = Type.Object({ ids })

export const AddedItemsBody = Type.Object({
  ids,
  before: Type.Optional(
    Type.String({ description: 'Clip of the album before which the others are put; at its end if absent.' }),
  ),
})
