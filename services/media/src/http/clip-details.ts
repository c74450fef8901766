import { inDocument } from '@services/common/http/route-schema'
import { Type } from 'typebox'
import type { Config } from '../config.ts'
import { toResult } from '../core/clip-views/clip-result.ts'
import { type Clip, ownerState } from '../core/clips/clips.store.ts'
import type { ClipFile } from '../core/clips/renditions.store.ts'
import { describeEdit } from '../core/edits/edit.ts'
import type { ViewSummary } from '../core/views/views.store.ts'
import { errorCatalogue } from '../errors.ts'
import { ADDED_HEADERS, AttributionShape, answers, orNull, ResultShape, Time } from './shapes.ts'

const FileShape = Type.Object({
  bytes: Type.Integer(),
  width: Type.Integer(),
  height: Type.Integer(),
  sha256: Type.String(),
  copied: Type.Optional(
    Type.Boolean({ description: 'True for a file that has the streams of the source, not encoded again.' }),
  ),
})

/** Members for the owner of a clip, beside the specification's Result. */
const ownerMembers = {
  id: Type.String(),
  state: Type.Union(
    [Type.Literal('processing'), Type.Literal('ready'), Type.Literal('failed'), Type.Literal('hidden')],
    { description: '`hidden`: taken down by the operator; only its owner sees these details.' },
  ),
  progress: Type.Number({ description: 'Progress from 0 to 1.' }),
  title: orNull(Type.String()),
  tags: Type.Array(Type.String()),
  nsfw: Type.Boolean(),
  attribution: orNull(AttributionShape),
  token_id: orNull(Type.String(), { description: 'Token that added the clip.' }),
  created_at: Time,
  expires_at: orNull(Time, { description: 'Time at which the clip is deleted; null for one that stays.' }),
  sliding: Type.Boolean({ description: 'A visit extends the lifetime.' }),
  visibility: Type.Union([Type.Literal('public'), Type.Literal('unlisted'), Type.Literal('private')]),
  hidden_reason: Type.Optional(Type.String({ description: 'Why the operator hid the clip.' })),
  source: Type.Object({
    kind: Type.Union([Type.Literal('upload'), Type.Literal('import')]),
    url: orNull(Type.String()),
    type: Type.String(),
    bytes: Type.Integer(),
    sha256: Type.String(),
    duration: orNull(Type.Number(), {
      description: 'Seconds of the whole source; null if the file does not declare them.',
    }),
    width: Type.Integer(),
    height: Type.Integer(),
    repaired: Type.Optional(
      Type.Boolean({ description: 'True if parts of the source could not be read and are left out.' }),
    ),
  }),
  edit: Type.Optional(
    Type.Object(
      {
        start: Type.Optional(Type.Number()),
        duration: Type.Optional(Type.Number()),
        crop: Type.Optional(Type.String()),
        speed: Type.Optional(Type.Number()),
        mute: Type.Optional(Type.Boolean()),
        poster_at: Type.Optional(Type.Number()),
        caption: Type.Optional(Type.String()),
        caption_position: Type.Optional(Type.Union([Type.Literal('top'), Type.Literal('bottom')])),
      },
      { description: 'Changes to the source that had an effect; absent without one.' },
    ),
  ),
  poster: Type.Object(
    {
      at: orNull(Type.Number(), {
        description: 'Second of the clip that its owner chose; null for an automatic poster.',
      }),
      number: Type.Integer({ description: 'Number of changes; `files.jpg` names it.' }),
      change: Type.Optional(
        Type.Object(
          { at: Type.Number(), state: Type.Enum(['making', 'failed']) },
          { description: 'The last change, until it is made; after a failure the poster is the one before.' },
        ),
      ),
    },
    { description: 'Picture that stands for the clip.' },
  ),
  sizes: Type.Record(Type.String(), FileShape, { description: 'Files by kind; absent until they are stored.' }),
  views: Type.Optional(
    Type.Object(
      { month: Type.Integer({ description: 'Views of the last 30 days.' }), total: Type.Integer() },
      { description: 'Views of page, player and files together; absent while none are counted (`MEDIA_VIEWS=off`).' },
    ),
  ),
  failure: Type.Optional(
    Type.Object(
      { code: Type.String(), message: Type.String() },
      { description: 'Reason of the failure; the page of the clip shows it too.' },
    ),
  ),
}

export const DetailsShape = Type.Object({ ...ResultShape.properties, ...ownerMembers }, { title: 'Clip' })

/** The Result; with `?include=details` the whole Clip. */
const ResultOrDetailsShape = Type.Object(
  { ...ResultShape.properties, ...Type.Partial(Type.Object(ownerMembers)).properties },
  inDocument({ type: undefined, properties: undefined, anyOf: [ResultShape, DetailsShape] }),
)

/** Answers to a call that adds a clip. */
export const addedAnswers = (...refusals: number[]) =>
  answers(201, ResultOrDetailsShape, refusals, 'Idempotency-Replayed', ...ADDED_HEADERS)

function wholeSource({ info }: Clip) {
  const { durationSeconds: duration, width, height } = info.edited?.source ?? info
  return { duration, width, height, ...(info.repaired && { repaired: info.repaired }) }
}

function posterOf({ posterAt: at, posterNumber: number, posterWanted, posterState: state }: Clip) {
  return { at, number, ...(state && posterWanted !== null && { change: { at: posterWanted, state } }) }
}

export function toDetails(clip: Clip, files: readonly ClipFile[], site: Config['site'], views?: ViewSummary) {
  const { id, progress, title, tags, nsfw, attribution, bytes, sha256, errorCode: code } = clip
  return {
    ...toResult(clip, site),
    ...{ id, state: ownerState(clip), progress, title, tags, nsfw, attribution },
    token_id: clip.tokenId,
    created_at: clip.createdAt,
    expires_at: clip.expiresAt,
    sliding: clip.slidingSeconds !== null,
    visibility: clip.visibility,
    ...(clip.hiddenReason && { hidden_reason: clip.hiddenReason }),
    source: { kind: clip.sourceKind, url: clip.sourceUrl, type: clip.info.type, bytes, sha256, ...wholeSource(clip) },
    ...(clip.info.edited && { edit: describeEdit(clip.info.edited.edit) }),
    poster: posterOf(clip),
    sizes: Object.fromEntries(
      files.map(({ kind, copied, ...file }) => [
        kind,
        { ...file, ...(kind === 'jpg' && clip.posterFile), ...(copied && { copied }) },
      ]),
    ),
    ...(views && { views }),
    ...(code && { failure: { code, message: errorCatalogue[code].message } }),
  }
}
