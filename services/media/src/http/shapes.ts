// Shapes that several routes share; beside them in http/ the hooks and answers that several flows share. Nothing here
// knows a single flow. Tests: test/api-docs.test.ts, test/refused-bodies.test.ts.
import { inDocument, withHeaders } from '@services/common/http/route-schema'
import { type TSchema, type TSchemaOptions, Type } from 'typebox'

/** The error body; error-bodies.ts makes it. */
export const ErrorShape = Type.Object(
  {
    error: Type.Object({
      code: Type.String(),
      message: Type.String(),
      param: Type.Optional(Type.String({ description: 'Field that was refused.' })),
      details: Type.Optional(Type.Object({}, { additionalProperties: true })),
      request_id: Type.String(),
    }),
    message: Type.String(),
    reference: Type.String(),
  },
  { title: 'Error', additionalProperties: true, description: 'The codes are listed at /docs/errors.' },
)

/** The same in the form of RFC 9457; error-bodies.ts makes it. */
export const ProblemShape = Type.Object(
  {
    type: Type.String({ format: 'uri' }),
    title: Type.String(),
    status: Type.Integer(),
    detail: Type.String(),
    instance: Type.String({ format: 'uri' }),
    ...ErrorShape.properties,
  },
  { title: 'Problem', additionalProperties: true },
)

export const errorResponses = (...statuses: number[]) =>
  Object.fromEntries([...statuses, 500, 503].map((status) => [status, ErrorShape]))

/** The specification names these members and no others. */
export const ResultShape = Type.Object(
  {
    page: Type.String({ description: 'Page of the media.' }),
    files: Type.Object({ gif: Type.String(), jpg: Type.String(), mp4: Type.String(), webm: Type.String() }),
    oembed: Type.String({ description: 'oEmbed address.' }),
    embed: Type.String({
      description: 'HTML of an iframe that shows the media, 960 x 640 pixels at most and never wider than its column.',
    }),
    meta: Type.Object({
      duration: Type.String({
        description:
          'Length of the picture in seconds with the suffix s, as in 2.5s. A single picture lasts as long as its sound.',
      }),
      frames: Type.String(),
      height: Type.String(),
      width: Type.String(),
    }),
  },
  { title: 'Result' },
)

export const AddHeaders = Type.Object({
  prefer: Type.Optional(
    Type.String({
      description:
        '`respond-async` does not wait; `wait=n` waits n seconds; `wait-for=mp4` waits for poster and mp4 alone. An upload ' +
        'as a form with `delete-link` gets an X-Delete-URL.',
    }),
  ),
  'idempotency-key': Type.Optional(
    Type.String({ description: 'For 24 hours the same request with the same key gets the same clip.' }),
  ),
})

export const AddQuery = Type.Object({
  include: Type.Optional(
    Type.Unknown({
      description: '`details` adds the members of GET /media/{id}.',
      ...inDocument({ type: 'string', enum: ['details'] }),
    }),
  ),
})

/** Query of an address of a private clip; the handler reads it. */
export const linkQuery = {
  e: Type.Optional(
    Type.Unknown({ description: 'Expiry of a link to a private clip.', ...inDocument({ type: 'integer' }) }),
  ),
  s: Type.Optional(Type.Unknown({ description: 'Its signature.', ...inDocument({ type: 'string' }) })),
  a: Type.Optional(Type.Unknown({ description: 'Album that the link is one of.', ...inDocument({ type: 'string' }) })),
}

/** Time from now to the end of links. */
export const LinkSpan = Type.Union([Type.Number(), Type.String()], {
  description:
    'Time for which the links are good, as in `90m`, `7d` or seconds: a minute to 30 days; an hour if absent.',
  ...inDocument({ anyOf: undefined, type: ['number', 'string'] }),
})

const TIMES = {
  start: 'Begins the clip at this second of the source, or at `m:ss.mmm`; the source may then be longer.',
  duration: 'Seconds of the source that the clip has.',
  end: 'The end of the clip in the source, instead of `duration`.',
  poster_at: 'Second of the clip that its poster shows.',
}

const editFields = <Time extends TSchema>(time: (description: string) => Time) => ({
  start: Type.Optional(time(TIMES.start)),
  duration: Type.Optional(time(TIMES.duration)),
  end: Type.Optional(time(TIMES.end)),
  crop: Type.Optional(
    Type.String({
      description: '`x,y,width,height` in pixels of the upright picture, or proportions such as `1:1` from its middle.',
    }),
  ),
  speed: Type.Optional(Type.Number({ description: '0.25 to 4; the clip is shorter or longer accordingly.' })),
  mute: Type.Optional(Type.Boolean({ description: 'Leaves the sound out.' })),
  poster_at: Type.Optional(time(TIMES.poster_at)),
  caption: Type.Optional(
    Type.String({
      description:
        'Text in the picture, at most 120 characters, in 3 lines at most: Latin, Greek, Cyrillic, Armenian or Georgian.',
    }),
  ),
  caption_position: Type.Optional(Type.String({ description: '`top` or `bottom`, which is the default.' })),
})

/** Changes to a clip as fields of a form. */
export const EditFormFields = editFields((description) => Type.String({ description }))

/** The same in JSON: seconds as a number, or as text with minutes. */
export const EditFields = editFields((description) =>
  Type.Union([Type.Number(), Type.String()], {
    description,
    ...inDocument({ anyOf: undefined, type: ['number', 'string'] }),
  }),
)

const accessFields = <Value extends TSchema>(value: (description: string) => Value) => ({
  visibility: Type.Optional(
    Type.String({
      description: '`public` (the default); `unlisted` for those with the address; `private` for those with a link.',
      ...inDocument({ enum: ['public', 'unlisted', 'private'] }),
    }),
  ),
  expires_in: Type.Optional(value('Lifetime from now, as in `90m`, `7d` or seconds, up to five years; `never`.')),
  expires_at: Type.Optional(
    Type.String({
      description: 'End of the lifetime, instead of `expires_in`.',
      ...inDocument({ format: 'date-time' }),
    }),
  ),
  sliding: Type.Optional(
    Type.Boolean({ description: 'A visit of page or file extends the lifetime, once a day at most.' }),
  ),
})

/** Visibility and lifetime of a clip as fields of a form. */
export const AccessFormFields = accessFields((description) => Type.String({ description }))

/** The same in JSON. */
export const AccessFields = accessFields((description) =>
  Type.Union([Type.Number(), Type.String()], {
    description,
    ...inDocument({ anyOf: undefined, type: ['number', 'string'] }),
  }),
)

const attributionMembers = {
  site: Type.String({ description: 'twitter, reddit, instagram, or a custom URL.' }),
  user: Type.Optional(Type.String()),
  url: Type.Optional(Type.String()),
}
export const AttributionShape = Type.Object(attributionMembers, { title: 'Attribution' })

const textOrNull = Type.Optional(Type.String(inDocument({ type: ['string', 'null'] })))

/** Members that are null count as absent. */
export const AttributionInput = Type.Object(
  { site: attributionMembers.site, user: textOrNull, url: textOrNull },
  { title: 'AttributionInput' },
)

export const HtmlPage = Type.Unsafe<string>({ content: { 'text/html': { schema: Type.String() } } })

/** Refusals that browsers get as a page. */
export const PageOrError = Type.Unsafe<object>({
  content: { 'application/json': { schema: ErrorShape }, 'text/html': { schema: Type.String() } },
})

/** Answers to a counted call: `success` with this shape, or a refusal with one of these statuses. */
export const answers = <Status extends number, Shape extends TSchema>(
  status: Status,
  success: Shape,
  refusals: number[],
  ...headers: string[]
) =>
  ({
    [status]: counted(Type.Object({ success }), ...headers),
    ...errorResponses(...refusals),
  }) as Record<Status, Type.TObject<{ success: Shape }>>

/** A moment, which the serializer writes as ISO 8601. */
export const Time = Type.Unsafe<Date>(Type.String({ format: 'date-time' }))

/** A day of UTC, as in 2026-11-28. */
export const Day = (description: string) =>
  Type.String({ maxLength: 10, description, ...inDocument({ format: 'date' }) })

/** Query of days, which core/lists/day-span.ts reads. */
export const daysQuery = {
  from: Type.Optional(Day('First UTC day.')),
  to: Type.Optional(Day('Last UTC day; today if absent.')),
}

export const orNull = <Shape extends TSchema>(shape: Shape, options?: TSchemaOptions) =>
  Type.Union([shape, Type.Null()], options)

/** The answer to a call that was counted. */
export const counted = <Shape extends object>(shape: Shape, ...headers: string[]): Shape =>
  withHeaders(shape, ...RATE_HEADERS, ...headers)

export const RATE_HEADERS = ['RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset', 'RateLimit-Policy']

/** Headers of an answer that adds a clip; some are absent without a value. */
export const ADDED_HEADERS = [
  ...[
    'Location',
    'X-Media-State',
    'X-Media-Ready',
    'Preference-Applied',
    'X-Delete-Token',
    'X-Delete-URL',
    'X-Expires-At',
  ],
  ...['X-Quota-Limit', 'X-Quota-Remaining', 'X-Daily-Bytes-Limit', 'X-Daily-Bytes-Remaining'],
]

/** OpenAPI `security` of routes that need a token: one of three headers. */
export const TOKEN_SECURITY: Record<string, string[]>[] = [{ token: [] }, { bearer: [] }, { gifsApiKey: [] }]

/** Documentation of a route that needs a token. */
export const tokenRoute = (tag: string, operationId: string, summary: string, security = TOKEN_SECURITY) => ({
  tags: [tag],
  operationId,
  summary,
  security,
})

/** Documentation of an upload, which may be open to all. */
export const uploadRoute = (config: { uploadNeedsToken: boolean }, operationId: string, summary: string) =>
  tokenRoute('media', operationId, summary, config.uploadNeedsToken ? TOKEN_SECURITY : [...TOKEN_SECURITY, {}])
