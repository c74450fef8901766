import { Type } from 'typebox'

/** The error body; error-bodies.ts makes it. */
export const ErrorShape = Type.Object(
  {
    error: Type.Object({
      code: Type.String(),
      message: Type.String(),
      param: Type.Optional(Type.String({ description: 'The field that is to blame.' })),
      details: Type.Optional(Type.Object({}, { additionalProperties: true })),
      request_id: Type.String(),
    }),
    message: Type.String(),
    reference: Type.String(),
  },
  { additionalProperties: true, description: 'The codes are listed in the README.' },
)

/** The error answers a route documents, by status. */
export const errorResponses = (...statuses: number[]) =>
  Object.fromEntries([...statuses, 500, 503].map((status) => [status, ErrorShape]))

/** Spelled out in the specification: these members and no others. */
export const ResultShape = Type.Object({
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
})

/** Of both requests that add a clip. */
export const AddHeaders = Type.Object({
  prefer: Type.Optional(Type.String({ description: '`respond-async` does not wait.' })),
  'idempotency-key': Type.Optional(
    Type.String({ description: 'For 24 hours the same request with the same key gets the same clip.' }),
  ),
})

export const AddQuery = Type.Object({
  include: Type.Optional(Type.Unknown({ description: '`details` adds what GET /media/{id} tells.' })),
})

export const AttributionShape = Type.Object({
  site: Type.String({ description: 'twitter, reddit, instagram, or a custom URL.' }),
  user: Type.Optional(Type.String()),
  url: Type.Optional(Type.String()),
})

/** `security` of the routes that need a token, as OpenAPI names it. */
export const TOKEN_SECURITY = [{ token: [] }]
